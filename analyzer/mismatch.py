"""Says why a rendering's count may differ from the server's: the likeliest reason, by rules, first that fits.

It only knows counts and what a body holds, and so it guesses, and says what to try; `locality verify
--server URL` finds the very token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analyzer.core import Conversation, Rendering, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What about a request may make its rendering differ.

    `redacted`: secrets in the body were replaced; `truncates`: it asks for truncation; `bos`: the
    tokenizer names a BOS; `doubled`: the rendering begins with the same token twice; `inline_system`: a
    system message stands within the conversation.
    """

    redacted: bool = False
    truncates: bool = False
    media: bool = False
    tools: bool = False
    reasoning: bool = False
    bos: bool = False
    doubled: bool = False
    inline_system: bool = False


_NEXT = "locality verify --server URL finds the token"
_FAR_BELOW = 2
"""A server that counts less than one in so many of our tokens has not seen the whole prompt."""


def traits_of(
    conversation: Conversation, rendering: Rendering | None, *, redacted: bool, truncates: bool, bos: bool
) -> Traits:
    """The traits of one prompt."""
    ids: list[int] = [] if rendering is None else rendering.token_ids[:2].tolist()
    return Traits(
        redacted=redacted,
        truncates=truncates,
        media=any(_is_media(part) for message in conversation.messages for part in _parts(message)),
        tools=bool(conversation.tools) or any(item.get("tool_calls") for item in conversation.messages),
        reasoning=any(item.get("reasoning") is not None for item in conversation.messages),
        bos=bos,
        doubled=len(ids) == 2 and ids[0] == ids[1],
        inline_system=not conversation.merges_system and _has_inline_system(conversation),
    )


def _has_inline_system(conversation: Conversation) -> bool:
    said = [item.get("role") == "system" for item in conversation.messages]
    return False in said and any(said[said.index(False) :])


def likely_reason(traits: Traits, rendered: int, reported: int | None, others: Sequence[int]) -> str:
    """Why `rendered` tokens are not the `reported` ones, in one sentence with the next step.

    `reported` is None where the server only gave a total for several prompts. `others` are the
    differences (reported - rendered) of all renderings of the conversation that were checked by their
    count, this one included.
    """
    if traits.redacted:
        return "secrets in the body were replaced, so these are not the tokens that the server was sent"
    if traits.media:
        return "the body holds media, whose tokens only the server can count"
    if traits.truncates:
        return "the body asks for truncation: the server dropped the head of the prompt"
    if reported is None:
        return f"the counts of this body's prompts do not add up to the server's total; {_NEXT}"
    off = reported - rendered
    if reported * _FAR_BELOW < rendered:
        return f"the server counted {-off} tokens less: it has likely truncated the prompt"
    if traits.bos and off == 1 and set(others) == {off}:
        return "the server counted one token more: likely a BOS that its tokenizer adds to the text"
    if traits.bos and traits.doubled and off == -1:
        return "the server counted one token less: the BOS is doubled here, by template and tokenizer"
    amount = f"{abs(off)} token{'s' if abs(off) > 1 else ''} {'more' if off > 0 else 'less'}"
    if len(others) > 1 and set(others) == {off}:
        return (
            f"the server counted {amount} at every turn: another chat template or other template arguments;"
            " give the server's start line with --serve-command"
        )
    held = [name for name, there in (("tools", traits.tools), ("reasoning", traits.reasoning)) if there]
    if held:
        what = " or ".join(held)
        return f"the server counted {amount}: its template likely prints {what} otherwise; {_NEXT}"
    return f"the server counted {amount}; {_NEXT}"


def worst(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """The verdict that a conversation as a whole rests on; None where nothing of it was rendered."""
    found = set(verdicts)
    order: tuple[Verdict, ...] = ("mismatch", "unchecked", "exact")
    return next((verdict for verdict in order if verdict in found), None)


def _parts(message: Mapping[str, Any]) -> Iterator[Any]:
    content = message.get("content")
    if isinstance(content, list | tuple):
        yield from content


def _is_media(part: Any) -> bool:
    """Whether a part is an image, a sound or a video (vLLM 0.32 renderers/chat_utils.py:1647)."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    return isinstance(kind, str) and any(word in kind for word in ("image", "audio", "video"))
