"""How far the prompts of one sealed capture begin as prompts of another do, by their keyed chains.

Without text it is the only way to lay prompts of two captures side by side; it takes the same key for both.
"""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.keyed_chain import STEP_TOKENS, links_in, shared_tokens
from analyzer.sealed_reading import is_sealed, read_key_name
from analyzer.wording import counted
from store.db import Capture

CHAIN = "chain"
"""The kind of sealed part that holds a prompt's chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Prompts of B beside those of A: their tokens, and those up to which one of A is the same.

    All in whole steps of 16 tokens. `whole` are the prompts that have no step of their own.
    """

    prompts: int
    whole: int
    tokens: int
    shared_tokens: int


def overlap(a: Capture, b: Capture) -> Overlap | str | None:
    """The overlap; a sentence where it cannot be told, None where one is not sealed."""
    if not (is_sealed(a) and is_sealed(b)):
        return None
    names = read_key_name(a), read_key_name(b)
    if names[0] != names[1] or names[0] is None:
        return (
            "prompts of A and B cannot be laid side by side: they were not sealed with the same key; give"
            " both the same --key-file"
        )
    known = {link for part in a.sealed(CHAIN) for link in links_in(part.content)}
    chains = [part.content for part in b.sealed(CHAIN)]
    tokens = [len(links_in(chain)) * STEP_TOKENS for chain in chains]
    shared = [shared_tokens(chain, known) for chain in chains]
    return Overlap(
        prompts=len(chains),
        whole=sum(one == other for one, other in zip(tokens, shared, strict=True)),
        tokens=sum(tokens),
        shared_tokens=sum(shared),
    )


def overlap_line(found: Overlap | str) -> str:
    """The same in one sentence."""
    if isinstance(found, str):
        return found
    return (
        f"{found.shared_tokens} of {counted(found.tokens, 'token')} in B's prompts, in steps of"
        f" {STEP_TOKENS}, begin as a prompt of A does; {found.whole} of {counted(found.prompts, 'prompt')}"
        " wholly"
    )
