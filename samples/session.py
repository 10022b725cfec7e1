"""The scripted bug-fix session: what the user says, what the model answers, what the tools return.

The text is in session.txt, in sections that begin with `@@`. Results of tools are computed on a copy of the
session's files in memory, so that a file read after an edit shows the edit; nothing touches the disk.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent / "session.txt"
type Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool: its arguments as the text that goes over the wire."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True, kw_only=True)
class Answer:
    """What the model says in one turn."""

    content: str
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Turn:
    """One request of the agent: what is new in it, and the answer."""

    user: str
    answer: Answer
    results: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Session:
    """The whole script. `results` of a turn answer its tool calls, keyed by call id."""

    system: str
    tools: list[Json]
    turns: list[Turn]


class Workspace:
    """The session's files in memory, and the tools that work on them."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def run(self, name: str, arguments: Json) -> str:
        """The result of a tool, as the text the agent sends back."""
        if name == "list_files":
            return "\n".join(sorted(self.files))
        if name == "read_file":
            lines = self.files[arguments["path"]].splitlines()
            return "\n".join(f"{number:>4}  {line}".rstrip() for number, line in enumerate(lines, 1))
        if name == "search":
            return self._search(arguments["text"])
        return self._edit(arguments["path"], arguments["old"], arguments["new"])

    def _search(self, text: str) -> str:
        found = [
            f"{path}:{number}: {line.strip()}"
            for path in sorted(self.files)
            for number, line in enumerate(self.files[path].splitlines(), 1)
            if text in line
        ]
        return "\n".join(found) or "no match"

    def _edit(self, path: str, old: str, new: str) -> str:
        before = self.files[path]
        if before.count(old) != 1:
            raise ValueError(f"{path} holds the old passage {before.count(old)} times, not once")
        self.files[path] = before.replace(old, new)
        line = before[: before.index(old)].count("\n") + 1
        return f"edited {path} at line {line}: {old.count('\n') + 1} lines became {new.count('\n') + 1}"


def _sections(text: str) -> list[tuple[list[str], str]]:
    sections = []
    for part in text.split("@@ ")[1:]:
        head, _, body = part.partition("\n")
        sections.append((head.split(), body.rstrip("\n")))
    return sections


def _call(words: list[str], body: str, number: int) -> ToolCall:
    if words[0] == "edit":
        old, new = body.split("\n----\n")
        return ToolCall(
            id=f"call_{number:03d}",
            name="edit_file",
            arguments=json.dumps({"path": words[1], "old": old, "new": new}, ensure_ascii=False),
        )
    return ToolCall(id=f"call_{number:03d}", name=words[1], arguments=body)


@cache
def load_session() -> Session:
    """Read the script; the result is shared, so treat it as read-only."""
    session, workspace = Session(system="", tools=[], turns=[]), Workspace()
    user, number = "", 0
    for words, body in _sections(SCRIPT.read_text(encoding="utf-8")):
        match words[0]:
            case "system":
                session.system = body
            case "tools":
                session.tools = json.loads(body)
            case "file":
                workspace.files[words[1]] = body + "\n"
            case "user":
                user = body
            case "answer":
                session.turns.append(Turn(user=user, answer=Answer(content=body)))
                user = ""
            case "think":
                session.turns[-1].answer.reasoning = body
            case "call" | "edit":
                number += 1
                _add_call(session.turns[-1], _call(words, body, number), workspace)
            case "result":
                turn = session.turns[-1]
                turn.results[turn.answer.calls[-1].id] = body
            case other:
                raise ValueError(f"{SCRIPT.name} has an unknown section: {other}")
    return session


def _add_call(turn: Turn, call: ToolCall, workspace: Workspace) -> None:
    turn.answer.calls.append(call)
    if call.name != "run_tests":
        turn.results[call.id] = workspace.run(call.name, json.loads(call.arguments))
