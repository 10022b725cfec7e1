"""Ways to break the history of a session's next request.

A fault gets an earlier and a later request and changes either in place; one that cannot be put into this
session returns False. Formats and words are meant to be unlike those of the analysis.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from tests.causes.sessions import Session, Step, paragraph, sentence


def moving_block(rng: random.Random, before: Session, after: Session) -> bool:
    blocks = (
        "<note>build mode</note>",
        f"<system-reminder>\nRemember: {sentence(rng)}\n</system-reminder>",
        f"<environment_details>\n{paragraph(rng)}\n</environment_details>",
        f"[mode: {sentence(rng)}]",
        f"Reminder: {sentence(rng, 14)}",
    )
    block = rng.choice(blocks)
    users = [n for n, step in enumerate(before.steps) if step.role == "user"]
    if after.steps[-1].role != "user" or not users:
        return False
    at = users[-1] if rng.random() < 0.7 else rng.choice(users)
    front = rng.random() < 0.3
    for made, n in ((before, at), (after, len(after.steps) - 1)):
        step = made.steps[n]
        text = f"{block}\n{step.text}" if front else f"{step.text}\n{block}"
        made.steps[n] = Step(role="user", text=text)
    return True


def inserted_status(rng: random.Random, before: Session, after: Session) -> bool:
    """A status message in front of the last assistant message, in both requests."""
    status = Step(role="user", text=f"<status>{sentence(rng)}</status>")
    for made in (before, after):
        last = [n for n, step in enumerate(made.steps) if step.role == "assistant"]
        if not last:
            return False
        made.steps = [*made.steps[: last[-1]], status, *made.steps[last[-1] :]]
    return True


def _earlier(
    rng: random.Random, before: Session, after: Session, *roles: str, last: bool = True
) -> int | None:
    found = [n for n, step in enumerate(before.steps) if step.role in roles and step.text]
    if not last:
        found = [n for n in found if n < len(before.steps) - 1]
    return rng.choice(found) if found else None


def whitespace(rng: random.Random, before: Session, after: Session) -> bool:
    at = _earlier(rng, before, after, "user", "assistant", "tool")
    if at is None:
        return False
    ways: tuple[Callable[[str], str], ...] = (
        lambda text: text + "\n",
        lambda text: text + " ",
        lambda text: text.replace(" ", "  ", 1),
        lambda text: text.replace(". ", ".\n", 1),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n", 1),
    )
    one, other = before.steps[at], after.steps[at]
    way = rng.choice(ways)
    if rng.random() < 0.3:
        one, other = other, one
    other.text = way(one.text)
    return other.text != one.text


def tool_args(rng: random.Random, before: Session, after: Session) -> bool:
    calling = [n for n, step in enumerate(before.steps) if step.calls]
    if not calling:
        return False
    for n in calling if rng.random() < 0.4 else [rng.choice(calling)]:
        for call in after.steps[n].calls:
            items = list(call.arguments.items())
            items = items[::-1] if rng.random() < 0.5 else sorted(items)
            call.spelt = json.dumps(dict(items), separators=(",", ":") if rng.random() < 0.5 else None)
    return True


def ids_reminted(rng: random.Random, before: Session, after: Session) -> bool:
    renamed = {
        call.id: f"call_{rng.getrandbits(48):012x}"
        for step in after.steps[: len(before.steps)]
        for call in step.calls
    }
    for step in after.steps:
        step.call_id = renamed.get(step.call_id, step.call_id)
        for call in step.calls:
            call.id = renamed.get(call.id, call.id)
    return bool(renamed)


def reasoning_dropped(rng: random.Random, before: Session, after: Session) -> bool:
    thinking = [n for n, step in enumerate(before.steps) if step.reasoning]
    if not thinking:
        return False
    for n in thinking if rng.random() < 0.5 else [rng.choice(thinking)]:
        after.steps[n].reasoning = ""
    return True


def tool_result_edited(rng: random.Random, before: Session, after: Session) -> bool:
    results = [n for n, step in enumerate(before.steps) if step.role == "tool" and len(step.text) > 60]
    if not results:
        return False
    for n in results if rng.random() < 0.3 else [rng.choice(results)]:
        text = after.steps[n].text
        after.steps[n].text = rng.choice(
            (
                "[cleared]",
                "[Old tool result content cleared]",
                text[: len(text) // 3] + "\n… (truncated)",
                "(output removed)",
                text[:40],
                "<omitted/>",
                text[:30] + " [...] " + text[-20:],
                "",
            ),
        )
    return True


def compacted(rng: random.Random, before: Session, after: Session) -> bool:
    if len(before.steps) < 5:
        return False
    texts = (
        f"Summary of the work so far: {paragraph(rng, 6)}",
        f"This session continues from an earlier conversation that ran out of context. {paragraph(rng, 8)}",
        f"<summary>\n{paragraph(rng, 8)}\n</summary>",
        f"# Conversation history (compacted)\n{paragraph(rng, 5)}",
    )
    summary = Step(role="user", text=rng.choice(texts))
    tail = after.steps[-1:] if after.steps[-1].role == "user" and rng.random() < 0.5 else []
    after.steps = [summary, *tail]
    return True


def front_truncated(rng: random.Random, before: Session, after: Session) -> bool:
    """Whole turns gone from the front."""
    users = [n for n, step in enumerate(before.steps) if step.role == "user" and n]
    if not users:
        return False
    after.steps = after.steps[rng.choice(users) :]
    return True


def message_dropped(rng: random.Random, before: Session, after: Session) -> bool:
    plain = [
        n
        for n, step in enumerate(before.steps[:-1])
        if n > 1 and step.role in ("user", "assistant") and not step.calls
    ]
    if not plain:
        return False
    del after.steps[rng.choice(plain)]
    return True


def nudge_dropped(rng: random.Random, before: Session, after: Session) -> bool:
    nudge = Step(role="user", text=rng.choice(("Keep going.", "Please continue with the task.", "Go on!")))
    if before.steps[-1].role == "user":
        return False
    before.steps = [*before.steps, nudge]
    if rng.random() < 0.5 and after.steps[-1].role != "user":
        after.steps = [*after.steps, nudge]
    return True


def branch(rng: random.Random, before: Session, after: Session) -> bool:
    users = [n for n, step in enumerate(before.steps) if step.role == "user" and n]
    if not users:
        return False
    at = users[-1] if rng.random() < 0.6 else rng.choice(users)
    after.steps = [*after.steps[:at], Step(role="user", text=paragraph(rng))]
    return True


def rewound(rng: random.Random, before: Session, after: Session) -> bool:
    users = [n for n, step in enumerate(before.steps[:-1]) if step.role == "user" and n]
    if not users:
        return False
    after.steps = after.steps[: rng.choice(users) + 1]
    return True


def edited(rng: random.Random, before: Session, after: Session) -> bool:
    at = _earlier(rng, before, after, "user", "assistant", last=False)
    if at is None:
        return False
    after.steps[at].text = paragraph(rng)
    return after.steps[at].text != before.steps[at].text


def moving_part(rng: random.Random, before: Session, after: Session) -> bool:
    """A reminder as a part of its own, with the newest message."""
    if after.steps[-1].role != "user" or before.steps[-1].role != "user":
        return False
    block = f"<system-reminder>{sentence(rng, 14)}</system-reminder>"
    for made in (before, after):
        made.steps[-1] = Step(role="user", parts=[made.steps[-1].text, block])
    after.steps[len(before.steps) - 1].parts = before.steps[-1].parts[:1]  # type: ignore[index]
    return True


def moving_message(rng: random.Random, before: Session, after: Session) -> bool:
    """A reminder as a message of its own at the end of every request."""
    block = Step(role="user", text=f"<reminder>{sentence(rng, 14)}</reminder>")
    before.steps, after.steps = [*before.steps, block], [*after.steps, block]
    return True


def moving_with_numbers(rng: random.Random, before: Session, after: Session) -> bool:
    """A block in the newest message that holds a count."""
    if after.steps[-1].role != "user" or before.steps[-1].role != "user":
        return False
    for made in (before, after):
        made.steps[-1] = Step(
            role="user", text=f"{made.steps[-1].text}\n[tokens left: {rng.randint(1000, 9999)}]"
        )
    after.steps[len(before.steps) - 1].text = before.steps[-1].text.rpartition("\n")[0]
    return True


def result_rejsoned(rng: random.Random, before: Session, after: Session) -> bool:
    results = [n for n, step in enumerate(before.steps) if step.role == "tool"]
    if not results:
        return False
    at = rng.choice(results)
    value = {"path": "a.py", "lines": [1, 2], "found": {"x": 1, "y": sentence(rng)}}
    before.steps[at].text = json.dumps(value)
    after.steps[at].text = rng.choice(
        (
            json.dumps(value, indent=2),
            json.dumps(value, separators=(",", ":")),
            json.dumps(dict(reversed(value.items()))),
        )
    )
    return True


def compacted_with_tail(rng: random.Random, before: Session, after: Session) -> bool:
    users = [n for n, step in enumerate(before.steps) if step.role == "user" and n]
    if not users or users[-1] < 6:
        return False
    summary = Step(role="user", text=f"Summary of our conversation so far:\n{paragraph(rng, 8)}")
    head = before.steps[:1] if rng.random() < 0.5 else []
    after.steps = [*head, summary, *after.steps[users[-1] :]]
    return len(after.steps) < len(before.steps) and len(before.steps) - users[-1] < users[-1] // 2


def front_behind_task(rng: random.Random, before: Session, after: Session) -> bool:
    """The first message is kept, and turns behind it are gone; a note may say so."""
    users = [n for n, step in enumerate(before.steps) if step.role == "user" and n > 2]
    if not users:
        return False
    note = (
        [Step(role="user", text="[Earlier messages were left out to save space]")]
        if rng.random() < 0.4
        else []
    )
    after.steps = [after.steps[0], *note, *after.steps[rng.choice(users) :]]
    return True


def front_by_one(rng: random.Random, before: Session, after: Session) -> bool:
    del after.steps[0]
    return after.steps[0].role != "tool"


def failed_turn(rng: random.Random, before: Session, after: Session) -> bool:
    """An answer with its calls and their results is gone."""
    calling = [n for n, step in enumerate(before.steps[:-4]) if step.calls and n > 2]
    if not calling:
        return False
    at = rng.choice(calling)
    del after.steps[at : at + 1 + len(after.steps[at].calls)]
    return True


def retried(rng: random.Random, before: Session, after: Session) -> bool:
    """The last answer of the model was made once more, and came out otherwise."""
    answers = [n for n, step in enumerate(before.steps) if step.role == "assistant" and n > 2]
    if not answers:
        return False
    at = answers[-1]
    new = Step(role="assistant", text=paragraph(rng, 6))
    after.steps = [*after.steps[:at], new, Step(role="user", text=paragraph(rng))]
    return True


def image_gone(rng: random.Random, before: Session, after: Session) -> bool:
    at = _earlier(rng, before, after, "user", last=False)
    if at is None:
        return False
    before.steps[at].images = ["iVBORw0KGgo" + f"{rng.getrandbits(64):x}"]
    if rng.random() < 0.4:
        after.steps[at].parts = ["[image removed]", after.steps[at].text]
    return True


def image_changed(rng: random.Random, before: Session, after: Session) -> bool:
    at = _earlier(rng, before, after, "user", last=False)
    if at is None:
        return False
    before.steps[at].images = ["iVBORw0KGgo" + f"{rng.getrandbits(64):x}"]
    after.steps[at].images = ["iVBORw0KGgo" + f"{rng.getrandbits(64):x}"]
    return True


def second_system_edited(rng: random.Random, before: Session, after: Session) -> bool:
    """A status of role system within the conversation that is kept up to date in its place."""
    at = rng.randint(1, len(before.steps) - 1)
    if before.steps[at].role == "tool":
        return False
    for made, left in ((before, rng.randint(5000, 9999)), (after, rng.randint(1000, 4999))):
        made.steps = [
            *made.steps[:at],
            Step(role="system", text=f"Context left: {left} tokens"),
            *made.steps[at:],
        ]
    return True
