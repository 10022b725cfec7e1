"""Ways to break a session's next request, each under the label that an outside reader would give it.

A fault gets an earlier and a later request and changes either in place; one that cannot be put into this
session returns False. Formats and words are meant to be unlike those of the analysis.
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from tests.causes.sessions import Session, Step, paragraph, sentence

type Fault = Callable[[random.Random, Session, Session], bool]

STAMPS = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S.123456+00:00",
    "%H:%M:%S",
    "%a %b %d %H:%M:%S %Y",
    "%d/%m/%Y, %H:%M:%S",
    "%B %d, %Y at %I:%M:%S %p",
    "%Y%m%dT%H%M%SZ",
    "rfc",
    "epoch",
    "epoch_ms",
)
MINUTES = ("%Y-%m-%d %H:%M", "%H:%M", "%A, %d %B %Y, %H:%M UTC", "%m/%d/%Y %I:%M %p", "%d.%m.%Y %H:%M")
DAYS = ("%Y-%m-%d", "%A, %d %B", "%A, %B %d, %Y", "%d %b %Y", "%m/%d/%Y", "%Y/%m/%d", "%A", "%d.%m.%Y", "%b %d")
HOURS = ("%Y-%m-%d %H:00", "%I %p", "%Y-%m-%d %I %p")
CLOCK_LINES = (
    "Current time: {}",
    "<env>\nNow: {}\n</env>",
    "Today is {}.",
    "The user's local time is {} (keep it in mind)",
    "timestamp={};",
    "[{}] session log",
    '{{"now": "{}"}}',
)


def _stamp(moment: datetime, pattern: str) -> str:
    if pattern == "rfc":
        return format_datetime(moment)
    if pattern.startswith("epoch"):
        return str(int(moment.timestamp() * (1000 if pattern == "epoch_ms" else 1)))
    return moment.strftime(pattern)


def _line(rng: random.Random, before: Session, after: Session, one: str, other: str) -> bool:
    """Put a line into both system texts, at the same random place."""
    if not before.system or one == other:
        return False
    rows = before.system[0].split("\n")
    at = rng.randint(0, len(rows))
    for made, line in ((before, one), (after, other)):
        made.system = ["\n".join([*rows[:at], line, *rows[at:]]), *made.system[1:]]
    return True


def _clock(patterns: tuple[str, ...], step: timedelta) -> Fault:
    def fault(rng: random.Random, before: Session, after: Session) -> bool:
        start = datetime(2031, rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23), rng.randint(0, 59), tzinfo=UTC)
        later = start + step * rng.randint(1, 3)
        pattern, line = rng.choice(patterns), rng.choice(CLOCK_LINES)
        return _line(rng, before, after, line.format(_stamp(start, pattern)), line.format(_stamp(later, pattern)))

    return fault


def _nonce(rng: random.Random) -> str:
    size = rng.choice((5, 8, 12, 16, 32, 40, 64))
    made = [
        lambda: f"{rng.getrandbits(4 * size):0{size}x}",
        lambda: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        lambda: base64.b64encode(rng.randbytes(rng.choice((9, 12, 16, 20)))).decode(),
        lambda: base64.urlsafe_b64encode(rng.randbytes(15)).decode().rstrip("="),
        lambda: "req_" + "".join(rng.choice("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(20)),
        lambda: "".join(rng.choice("0123456789ABCDEFGHJKMNPQRSTVWXYZ") for _ in range(26)),
    ]
    return rng.choice(made)()


def head_nonce(rng: random.Random, before: Session, after: Session) -> bool:
    lines = (
        "x-attr: v=9; h={};",
        "x-anthropic-billing-header: cc_version=2.1.3; cch={};",
        "Session id: {}",
        "trace={} keep this",
        "<!-- {} -->",
        "Your scratch folder is /tmp/agent-{}/work",
        "request {}",
        "build {} of the agent",
    )
    state = rng.getstate()
    line = rng.choice(lines)
    kind = rng.getrandbits(32)
    rng.setstate(state)
    one, other = random.Random(kind), random.Random(kind)
    first = _nonce(one)
    for _ in range(50):  # the same kind of id, of the same length
        other.seed(rng.getrandbits(64))
        second = _nonce(other)
        if len(second) == len(first) and ("-" in second) == ("-" in first) and _classes(first) == _classes(second):
            return _line(rng, before, after, line.format(first), line.format(second))
    return False


def _classes(text: str) -> tuple[bool, ...]:
    return text.isalnum(), text.lower() == text, text.upper() == text, "_" in text, text.endswith("=")


def env_snapshot(rng: random.Random, before: Session, after: Session) -> bool:
    files = [f"src/{sentence(rng).split()[0].lower()}_{n}.py" for n in range(6)]
    status = [f" M {files[0]}", f"?? {files[1]}", f"A  {files[2]}", f" D {files[3]}"]
    blocks = (
        ("Git status:\nclean", "Git status:\n" + "\n".join(status[: rng.randint(1, 4)])),
        ("Git status:\n" + status[0], "Git status:\n" + "\n".join(status[1:])),
        ("Working directory: /home/ann/quay", "Working directory: /home/ann/quay/.worktrees/b2"),
        ("<env>\ncwd: /srv/app\nbranch: main\n</env>", "<env>\ncwd: /srv/app\nbranch: fix/tides\n</env>"),
        ("Files:\n" + "\n".join(files[:4]), "Files:\n" + "\n".join(files)),
        ("Project tree:\n├── a.py\n└── b.py", "Project tree:\n├── a.py\n├── c.py\n└── b.py"),
        ("Context window: 49% full", "Context window: 52% full"),
        (f"Tokens left: {rng.randint(100000, 199999)}", f"Tokens left: {rng.randint(10000, 99999)}"),
        ("There are 12 open files.", "There are 13 open files."),
        ("Current branch: main\nLast commits:\n3f2a91c Fix tides", "Current branch: main\nLast commits:\n91bc0de Add sheet\n3f2a91c Fix tides"),
        ("Open tabs: a.py, b.py", "Open tabs: b.py, c.py"),
        ("You have used $0.42 of your budget.", "You have used $0.57 of your budget."),
        ("Memory:\n- user_likes: tea", "Memory:\n- user_likes: tea\n- user_city: Kiel"),
        ("Available tools:\n- glob: find files", "Available tools:\n- glob: find files\n- shell: run a command"),
        ("Changes not staged for commit:\n\tmodified:   a.py", "nothing to commit, working tree clean"),
    )
    return _line(rng, before, after, *rng.choice(blocks))


def reordered(rng: random.Random, before: Session, after: Session) -> bool:
    facts = [f"- {sentence(rng, 12)}" for _ in range(5)]
    other = rng.sample(facts, 5)
    head = rng.choice(("What you remember:", "<memory>", "Facts about the user"))
    return _line(rng, before, after, "\n".join([head, *facts]), "\n".join([head, *other]))


def system_changed(rng: random.Random, before: Session, after: Session) -> bool:
    pairs = (
        ("You are the planner of this repository.", "You are the builder of this repository."),
        ("Always answer in English.", "Answer in the user's language."),
        ("Mode: plan. Change nothing.", "Mode: build. You may change things."),
        ("Be brief.", "Be thorough, and show every step you take."),
        ("You write decade reports.", "You write facade reports."),
        ("You run version 3.1.4 of the agent.", "You run version 3.2.0 of the agent."),
        ("", "Do not touch the tests unless the user asks for it."),
        ("Use the metric system.\nNever swear.", "Use the metric system."),
    )
    one, other = rng.choice(pairs)
    if one and other:
        return _line(rng, before, after, one, other)
    rows = before.system[0].split("\n")
    at = rng.randint(0, len(rows))
    after.system = ["\n".join([*rows[:at], other, *rows[at:]])]
    return True


def tools_order(rng: random.Random, before: Session, after: Session) -> bool:
    if rng.random() < 0.3:
        after.tools.sort(key=lambda tool: str(tool["name"]))
    elif rng.random() < 0.5:
        after.tools.reverse()
    else:
        rng.shuffle(after.tools)
    return [tool["name"] for tool in after.tools] != [tool["name"] for tool in before.tools]


def _deep_reordered(rng: random.Random, value: object) -> object:
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: _deep_reordered(rng, value[key]) for key in keys}
    return value


def schema_key_order(rng: random.Random, before: Session, after: Session) -> bool:
    several = rng.random() < 0.5
    for tool in after.tools if several else [rng.choice(after.tools)]:
        tool["parameters"] = _deep_reordered(rng, tool["parameters"])
    return json.dumps(after.tools) != json.dumps(before.tools)


def schema_nonce(rng: random.Random, before: Session, after: Session) -> bool:
    at = rng.randrange(len(after.tools))
    text = before.tools[at]["description"]
    for made in (before, after):
        nonce = rng.choice((f"{rng.getrandbits(64):016x}", str(uuid.UUID(int=rng.getrandbits(128), version=4))))
        made.tools[at] = {**made.tools[at], "description": f"{text} Allowed: /tmp/box-{nonce}.sock"}
    return True


def schema_description(rng: random.Random, before: Session, after: Session) -> bool:
    at = rng.randrange(len(after.tools))
    after.tools[at] = {**after.tools[at], "description": paragraph(rng)}
    return after.tools != before.tools


def tools_set_changed(rng: random.Random, before: Session, after: Session) -> bool:
    if rng.random() < 0.5 and len(after.tools) > 1:
        del after.tools[rng.randrange(len(after.tools))]
    else:
        extra = {"name": "mcp__notes__add", "description": paragraph(rng), "parameters": {"type": "object", "properties": {}}}
        after.tools.insert(rng.randint(0, len(after.tools)), extra)
    return True


def tool_renamed(rng: random.Random, before: Session, after: Session) -> bool:
    at = rng.randrange(len(after.tools))
    after.tools[at] = {**after.tools[at], "name": after.tools[at]["name"] + "_v2"}
    return True


def tools_dropped(rng: random.Random, before: Session, after: Session) -> bool:
    after.tools = []
    if rng.random() < 0.7:
        after.steps = [*after.steps[: len(before.steps)], Step(role="user", text="Summarise all of this.")]
    return True


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


def _earlier(rng: random.Random, before: Session, after: Session, *roles: str, last: bool = True) -> int | None:
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
        call.id: f"call_{rng.getrandbits(48):012x}" for step in after.steps[: len(before.steps)] for call in step.calls
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
            ("[cleared]", "[Old tool result content cleared]", text[: len(text) // 3] + "\n… (truncated)", "(output removed)",
             text[:40], "<omitted/>", text[:30] + " [...] " + text[-20:], ""),
        )
    return True


def compacted(rng: random.Random, before: Session, after: Session) -> bool:
    if len(before.steps) < 5:
        return False
    texts = (
        f"Summary of the work so far: {paragraph(rng, 6)}",
        f"This session is being continued from a previous conversation that ran out of context. {paragraph(rng, 8)}",
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
        n for n, step in enumerate(before.steps[:-1]) if n > 1 and step.role in ("user", "assistant") and not step.calls
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


def identity(rng: random.Random, before: Session, after: Session) -> bool:
    """The system text in two parts, of which the first names another role (report 7)."""
    rest = before.system[0]
    before.system = [f"You are {sentence(rng)}", rest]
    after.system = [f"You are {sentence(rng)}", rest]
    return before.system != after.system


def system_part_added(rng: random.Random, before: Session, after: Session) -> bool:
    rest = before.system[0]
    parts = [rest, paragraph(rng, 3)]
    rng.shuffle(parts)
    before.system, after.system = [rest], parts
    return True


def system_gone(rng: random.Random, before: Session, after: Session) -> bool:
    one, other = (before, after) if rng.random() < 0.5 else (after, before)
    other.system = []
    return True


def snapshot_part(rng: random.Random, before: Session, after: Session) -> bool:
    """A part of the system text that holds the state of the repository alone."""
    rest = before.system[0]
    before.system = [rest, "gitStatus: branch main\n\nStatus:\n M src/a.py"]
    after.system = [rest, "gitStatus: branch main\n\nStatus:\n M src/a.py\n?? notes.txt\n M src/b.py"]
    return True


def system_whitespace(rng: random.Random, before: Session, after: Session) -> bool:
    after.system = [before.system[0].replace("\n", "\n\n", 1) if rng.random() < 0.5 else before.system[0] + "\n"]
    return True


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
        made.steps[-1] = Step(role="user", text=f"{made.steps[-1].text}\n[tokens left: {rng.randint(1000, 9999)}]")
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
        (json.dumps(value, indent=2), json.dumps(value, separators=(",", ":")), json.dumps(dict(reversed(value.items()))))
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
    note = [Step(role="user", text="[Earlier messages were left out to save space]")] if rng.random() < 0.4 else []
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


def required_order(rng: random.Random, before: Session, after: Session) -> bool:
    tool = rng.choice(after.tools)
    tool["parameters"]["required"].reverse()
    return True


def clock_twice(rng: random.Random, before: Session, after: Session) -> bool:
    start = datetime(2031, 3, rng.randint(1, 28), 9, 58, tzinfo=UTC)
    for made, moment in ((before, start), (after, start + timedelta(minutes=rng.randint(1, 9)))):
        made.system = [f"Now: {moment:%Y-%m-%d %H:%M}\n{made.system[0]}\nRemember that it is {moment:%H:%M}."]
    return True


def second_system_edited(rng: random.Random, before: Session, after: Session) -> bool:
    """A status of role system within the conversation that is kept up to date in its place."""
    at = rng.randint(1, len(before.steps) - 1)
    if before.steps[at].role == "tool":
        return False
    for made, left in ((before, rng.randint(5000, 9999)), (after, rng.randint(1000, 4999))):
        made.steps = [*made.steps[:at], Step(role="system", text=f"Context left: {left} tokens"), *made.steps[at:]]
    return True


FAULTS: dict[str, tuple[str, Fault]] = {
    "clock seconds": ("volatile.clock", _clock(STAMPS, timedelta(seconds=17))),
    "clock minutes": ("volatile.clock", _clock(MINUTES, timedelta(minutes=7))),
    "clock hours": ("volatile.clock", _clock(HOURS, timedelta(hours=1))),
    "clock days": ("volatile.clock", _clock(DAYS, timedelta(days=1))),
    "nonce": ("volatile.head_nonce", head_nonce),
    "snapshot": ("volatile.env_snapshot", env_snapshot),
    "reordered facts": ("volatile.env_snapshot", reordered),
    "sentence": ("system.changed", system_changed),
    "tools order": ("tools.order", tools_order),
    "schema keys": ("tools.schema_drift", schema_key_order),
    "schema nonce": ("tools.schema_drift", schema_nonce),
    "schema text": ("tools.schema_drift", schema_description),
    "tools set": ("tools.set_changed", tools_set_changed),
    "tool renamed": ("tools.set_changed", tool_renamed),
    "tools dropped": ("tools.dropped", tools_dropped),
    "moving block": ("history.moving_block", moving_block),
    "status put in": ("history.moving_block", inserted_status),
    "whitespace": ("history.reserialised", whitespace),
    "arguments": ("history.reserialised", tool_args),
    "ids": ("history.ids_reminted", ids_reminted),
    "reasoning": ("history.reasoning_dropped", reasoning_dropped),
    "tool result": ("history.tool_result_edited", tool_result_edited),
    "compaction": ("history.compacted", compacted),
    "front": ("history.front_truncated", front_truncated),
    "message": ("history.message_dropped", message_dropped),
    "nudge": ("history.message_dropped", nudge_dropped),
    "branch": ("history.branch", branch),
    "rewound": ("history.branch", rewound),
    "edited": ("history.edited", edited),
    "identity": ("system.changed", identity),
    "system part": ("system.changed", system_part_added),
    "system gone": ("system.changed", system_gone),
    "snapshot part": ("volatile.env_snapshot", snapshot_part),
    "system whitespace": ("history.reserialised", system_whitespace),
    "moving part": ("history.moving_block", moving_part),
    "moving message": ("history.moving_block", moving_message),
    "moving numbers": ("history.moving_block", moving_with_numbers),
    "result as JSON": ("history.reserialised", result_rejsoned),
    "compaction with tail": ("history.compacted", compacted_with_tail),
    "front behind task": ("history.front_truncated", front_behind_task),
    "front by one": ("history.front_truncated", front_by_one),
    "failed turn": ("history.message_dropped", failed_turn),
    "retried": ("history.branch", retried),
    "image gone": ("history.media_evicted", image_gone),
    "image changed": ("media.changed", image_changed),
    "required": ("tools.schema_drift", required_order),
    "clock twice": ("volatile.clock", clock_twice),
    "second system": ("volatile.env_snapshot", second_system_edited),
}
