"""Which bodies of the corpus hold which trap of rendering, so that none loses its proof unnoticed.

A trap's bodies are those whose name begins with its number (`trap07-...`). What they must show is said here:
that the server's ids are frozen, that it refused, or that two bodies have equal ids.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """One way in which a naive rendering leaves the server's.

    `refused` names bodies that the server answers with 400, `alike` pairs whose ids are equal. Where the
    trap is not one of ids, `note` says what is held in their place.
    """

    what: str
    refused: tuple[str, ...] = ()
    alike: tuple[tuple[str, str], ...] = ()
    note: str | None = None

    @property
    def has_ids(self) -> bool:
        """Whether ids of its own must be frozen."""
        return self.note is None


TRAPS = {
    1: Trap(what="absent content is empty, never null"),
    2: Trap(what="parts are joined or wrapped, empty ones dropped"),
    3: Trap(what="the content format is read off the template"),
    4: Trap(what="a tool's list content is joined in both formats"),
    5: Trap(what="most keys of a message do not survive"),
    6: Trap(what="reasoning under two names, thinking parts as text"),
    7: Trap(what="arguments are parsed, what is no object becomes an empty one"),
    8: Trap(what="keys of calls and parts are put in declared order"),
    9: Trap(what="tools are dumped anew"),
    10: Trap(what="tools are shown although tool_choice is none"),
    11: Trap(what="developer becomes system, and all system messages one"),
    12: Trap(what="an effort sets enable_thinking"),
    13: Trap(what="server defaults, and what beats them"),
    14: Trap(what="which template counts"),
    15: Trap(what="who adds special tokens, and a second BOS on Responses"),
    16: Trap(what="special tokens written in text are special tokens"),
    17: Trap(what="a client's billing line is cut off"),
    18: Trap(what="Anthropic bodies: joins, moves and losses"),
    19: Trap(what="Responses items: merges and losses"),
    20: Trap(what="renderers that are no templates"),
    21: Trap(what="dates in prompts"),
    22: Trap(
        what="continuing an answer needs add_generation_prompt: false",
        refused=("chat/trap22-continue-without-generation-prompt-off", "chat/trap22-both-flags"),
    ),
    23: Trap(what="truncation keeps the last tokens"),
    24: Trap(what="forwarded ids take the place of the messages"),
    25: Trap(what="/tokenize leaves out what chat renders"),
    26: Trap(
        what="an empty list of tools: refused on chat, taken on messages",
        refused=("chat/trap26-empty-tools",),
    ),
    27: Trap(
        what="a request's template needs the server's trust",
        refused=("chat/trap27-chat-template-of-the-request", "chat/trap27-chat-template-in-kwargs"),
    ),
    28: Trap(
        what="media become as many tokens as the image processor says",
        refused=(
            "chat/trap28-image-to-a-text-model",
            "messages/trap28-image-in-a-tool-result",
            "responses/trap28-image",
        ),
        note="no processor is at hand: models of text refuse, and the row of a model that takes media says"
        " why it has no ids (tests/analyzer/test_bad_exchanges.py)",
    ),
    29: Trap(
        what="equal ids under another salt hit nothing",
        alike=(
            ("chat/trap29-cache-salt", "chat/trap29-another-salt"),
            ("chat/trap29-cache-salt", "chat/trap29-no-salt"),
            ("completions/trap29-cache-salt", "completions/trap29-another-salt"),
            ("messages/trap29-cache-salt", "messages/trap29-another-salt"),
        ),
        note="a matter of the cache: the ids are equal, whatever the salt",
    ),
    30: Trap(
        what="generated ids need not be those of the same text rendered again",
        note="a matter of the cache: what is frozen is the history as rendered, odd spaces and all",
    ),
    31: Trap(
        what="refused requests never reach the cache",
        refused=(
            "chat/trap31-user-content-null",
            "chat/trap31-auto-tools-without-a-parser",
            "chat/trap31-no-messages",
            "chat/trap31-unknown-part-type",
            "messages/trap31-unknown-block-type",
            "responses/trap31-input-missing",
        ),
        note="a refused body has no ids",
    ),
    32: Trap(what="templates drop the reasoning of earlier turns"),
}
"""By their numbers in the list that this program was built against."""
