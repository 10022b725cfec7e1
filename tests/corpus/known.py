"""Bodies of the corpus whose ids are known to differ from vLLM's, and why: a report's row shows it."""

from __future__ import annotations

ITEMS = "vLLM renders a gpt-oss Responses history from its items, and not from the messages they make"

KNOWN = {
    "gpt-oss": dict.fromkeys(
        (
            "responses/trap19-only-the-first-output-part",
            "responses/trap19-reasoning-message-and-call-merge",
            "responses/trap19-reasoning-after-a-plain-message-attaches-backwards",
            "responses/trap19-call-then-message",
            "responses/trap19-a-plain-assistant-then-a-call",
        ),
        ITEMS,
    )
}
"""Set-up, case, reason. A case that comes to agree fails its test until it leaves this list."""
