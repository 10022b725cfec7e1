"""Ways to break the head of a session's next request: its system text and its tools.

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
DAYS = (
    "%Y-%m-%d",
    "%A, %d %B",
    "%A, %B %d, %Y",
    "%d %b %Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%A",
    "%d.%m.%Y",
    "%b %d",
)
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


def clock(patterns: tuple[str, ...], step: timedelta) -> Fault:
    def fault(rng: random.Random, before: Session, after: Session) -> bool:
        start = datetime(
            2031, rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23), rng.randint(0, 59), tzinfo=UTC
        )
        later = start + step * rng.randint(1, 3)
        pattern, line = rng.choice(patterns), rng.choice(CLOCK_LINES)
        return _line(
            rng, before, after, line.format(_stamp(start, pattern)), line.format(_stamp(later, pattern))
        )

    return fault


def _nonce(rng: random.Random) -> str:
    size = rng.choice((5, 8, 12, 16, 32, 40, 64))
    made = [
        lambda: f"{rng.getrandbits(4 * size):0{size}x}",
        lambda: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        lambda: base64.b64encode(rng.randbytes(rng.choice((9, 12, 16, 20)))).decode(),
        lambda: base64.urlsafe_b64encode(rng.randbytes(15)).decode().rstrip("="),
        lambda: (
            "req_"
            + "".join(
                rng.choice("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(20)
            )
        ),
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
        if (
            len(second) == len(first)
            and ("-" in second) == ("-" in first)
            and _classes(first) == _classes(second)
        ):
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
        (
            "Current branch: main\nLast commits:\n3f2a91c Fix tides",
            "Current branch: main\nLast commits:\n91bc0de Add sheet\n3f2a91c Fix tides",
        ),
        ("Open tabs: a.py, b.py", "Open tabs: b.py, c.py"),
        ("You have used $0.42 of your budget.", "You have used $0.57 of your budget."),
        ("Memory:\n- user_likes: tea", "Memory:\n- user_likes: tea\n- user_city: Kiel"),
        (
            "Available tools:\n- glob: find files",
            "Available tools:\n- glob: find files\n- shell: run a command",
        ),
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
        nonce = rng.choice(
            (f"{rng.getrandbits(64):016x}", str(uuid.UUID(int=rng.getrandbits(128), version=4)))
        )
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
        extra = {
            "name": "mcp__notes__add",
            "description": paragraph(rng),
            "parameters": {"type": "object", "properties": {}},
        }
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
    rng.choice((before, after)).system = []
    return True


def snapshot_part(rng: random.Random, before: Session, after: Session) -> bool:
    """A part of the system text that holds the state of the repository alone."""
    rest = before.system[0]
    before.system = [rest, "gitStatus: branch main\n\nStatus:\n M src/a.py"]
    after.system = [rest, "gitStatus: branch main\n\nStatus:\n M src/a.py\n?? notes.txt\n M src/b.py"]
    return True


def system_whitespace(rng: random.Random, before: Session, after: Session) -> bool:
    after.system = [
        before.system[0].replace("\n", "\n\n", 1) if rng.random() < 0.5 else before.system[0] + "\n"
    ]
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
