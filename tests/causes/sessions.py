"""Random agent sessions that belong to no dialect, and how each dialect sends them.

Nothing is wrong with them: a later request of a session appends to an earlier one. `tests/causes/faults.py`
breaks them.
"""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass, field
from typing import Any


def _words(text: str) -> list[str]:
    return text.split()


_VERBS = _words("open close fix move read write check rename sort count merge split load save print trim")
_NOUNS = _words("berth tide ship window sheet booking pilot harbour depth quay crane buoy lock channel")
_ADJECTIVES = _words("small late early deep narrow empty broken quiet second northern")
_TOOLS = _words("list_files read_file search edit_file run_tests fetch_page ask_user write_note")
RULES = (
    "Look before you change anything.",
    "Say what you found in one sentence.",
    "Never guess the name of a file.",
    "Prefer small edits over large ones.",
    "Explain a failure before you try again.",
    "Times are in UTC inside the library.",
    "Keep public names as they are.",
)


@dataclass(kw_only=True)
class Call:
    id: str
    name: str
    arguments: dict[str, Any]
    spelt: str | None = None
    """The arguments' JSON where it is to be sent otherwise than as `json.dumps` writes it."""


@dataclass(kw_only=True)
class Step:
    """One message; `parts` cuts its text into several where it is given."""

    role: str
    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    call_id: str = ""
    parts: list[str] | None = None
    images: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Session:
    """A request: everything that is sent, in no dialect."""

    system: list[str]
    tools: list[dict[str, Any]]
    steps: list[Step]
    extra: dict[str, Any] = field(default_factory=dict)


def sentence(rng: random.Random, words: int = 8) -> str:
    picked = [rng.choice((_VERBS, _NOUNS, _ADJECTIVES)[n % 3]) for n in range(rng.randint(4, words))]
    return " ".join(picked).capitalize() + rng.choice((".", ".", "?", "!"))


def paragraph(rng: random.Random, sentences: int = 3) -> str:
    return " ".join(sentence(rng) for _ in range(rng.randint(1, sentences)))


def session(rng: random.Random, *, reasoning: bool = True, steps: int = 24) -> Session:
    """A session with a few turns of a user, each a loop of tool calls."""
    system = [
        f"You are {rng.choice(('a coding agent', 'a careful helper', 'the planner of a harbour'))}. "
        + paragraph(rng),
        *(f"{n}. {rule}" for n, rule in enumerate(rng.sample(RULES, rng.randint(2, 5)), 1)),
        paragraph(rng, 5),
    ]
    names = rng.sample(_TOOLS, rng.randint(2, 6))
    made = Session(system=["\n".join(system)], tools=[_tool(rng, name) for name in names], steps=[])
    while len(made.steps) < rng.randint(6, steps):
        made.steps.append(Step(role="user", text=paragraph(rng)))
        for _ in range(rng.randint(0, 3)):
            made.steps += _loop(rng, names, reasoning)
        made.steps.append(_answer(rng, reasoning))
    return made


def appended(rng: random.Random, before: Session, *, reasoning: bool = True) -> Session:
    """The next request of a session: an answer and what follows it."""
    after = copy.deepcopy(before)
    names = [tool["name"] for tool in before.tools]
    if rng.random() < 0.5 and names:
        after.steps += _loop(rng, names, reasoning)
    else:
        after.steps += [_answer(rng, reasoning), Step(role="user", text=paragraph(rng))]
    return after


def request(rng: random.Random, whole: Session) -> Session:
    """A session up to a place where a request is sent: behind a user's message or a result."""
    ends = [n for n, step in enumerate(whole.steps, 1) if step.role in ("user", "tool") and n >= 5]
    ends = [n for n in ends if n == len(whole.steps) or whole.steps[n].role != "tool"]
    cut = rng.choice(ends or [len(whole.steps)])
    return Session(system=whole.system, tools=whole.tools, steps=whole.steps[:cut], extra=whole.extra)


def _loop(rng: random.Random, names: list[str], reasoning: bool) -> list[Step]:
    calls = [
        Call(
            id=f"call_{rng.getrandbits(48):012x}",
            name=rng.choice(names),
            arguments={
                "path": f"src/{rng.choice(_NOUNS)}.py",
                "limit": rng.randint(1, 99),
                "note": sentence(rng),
            },
        )
        for _ in range(rng.choice((1, 1, 1, 2)))
    ]
    asked = _answer(rng, reasoning)
    asked.calls = calls
    results = [
        Step(
            role="tool", call_id=call.id, text="\n".join(sentence(rng, 12) for _ in range(rng.randint(1, 12)))
        )
        for call in calls
    ]
    return [asked, *results]


def _answer(rng: random.Random, reasoning: bool) -> Step:
    return Step(role="assistant", text=paragraph(rng), reasoning=paragraph(rng) if reasoning else "")


def _tool(rng: random.Random, name: str) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": sentence(rng)},
            "limit": {"type": "integer", "minimum": 1, "description": sentence(rng)},
            "note": {"type": "string"},
        },
        "required": ["path", "limit"],
    }
    return {"name": name, "description": paragraph(rng), "parameters": parameters}


def body(dialect: str, made: Session) -> dict[str, Any]:
    """The request body in a dialect."""
    return {"chat": _chat, "messages": _anthropic, "responses": _responses}[dialect](made) | made.extra


def _chat(made: Session) -> dict[str, Any]:
    messages: list[Any] = [{"role": "system", "content": _system(made, "text")}] if made.system else []
    messages += [_chat_message(step) for step in made.steps]
    tools = [{"type": "function", "function": tool} for tool in made.tools]
    return {"messages": messages} | ({"tools": tools} if tools else {})


def _system(made: Session, kind: str) -> Any:
    return made.system[0] if len(made.system) == 1 else [{"type": kind, "text": text} for text in made.system]


def _chat_message(step: Step) -> dict[str, Any]:
    message: dict[str, Any] = {"role": step.role, "content": _content(step, "text")}
    if step.images:
        parts = (
            message["content"]
            if isinstance(message["content"], list)
            else [{"type": "text", "text": step.text}]
        )
        urls = [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}
            for image in step.images
        ]
        message["content"] = [*urls, *parts]
    if step.reasoning:
        message["reasoning_content"] = step.reasoning
    if step.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _spelt(call)}}
            for call in step.calls
        ]
    if step.role == "tool":
        message["tool_call_id"] = step.call_id
    return message


def _content(step: Step, kind: str) -> Any:
    return step.text if step.parts is None else [{"type": kind, "text": text} for text in step.parts]


def _spelt(call: Call) -> str:
    return json.dumps(call.arguments) if call.spelt is None else call.spelt


def _anthropic(made: Session) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for step in made.steps:
        if step.role == "tool":
            block = {"type": "tool_result", "tool_use_id": step.call_id, "content": _content(step, "text")}
            last = messages[-1] if messages else None
            if last and last["role"] == "user" and isinstance(last["content"], list):
                last["content"].append(block)
            else:
                messages.append({"role": "user", "content": [block]})
        elif step.role == "assistant":
            blocks: list[dict[str, Any]] = []
            if step.reasoning:
                blocks.append({"type": "thinking", "thinking": step.reasoning, "signature": "sig"})
            if step.text:
                blocks.append({"type": "text", "text": step.text})
            for call in step.calls:
                given = call.arguments if call.spelt is None else json.loads(call.spelt)
                blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
            messages.append({"role": "assistant", "content": blocks})
        else:
            content = _content(step, "text")
            if step.images:
                sources = [
                    {"type": "base64", "media_type": "image/png", "data": image} for image in step.images
                ]
                content = [
                    *({"type": "image", "source": source} for source in sources),
                    {"type": "text", "text": step.text},
                ]
            messages.append({"role": step.role, "content": content})
    tools = [
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
        for tool in made.tools
    ]
    made_body: dict[str, Any] = {"messages": messages}
    if made.system:
        made_body["system"] = _system(made, "text")
    return made_body | ({"tools": tools} if tools else {})


def _responses(made: Session) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for step in made.steps:
        if step.role == "tool":
            items.append({"type": "function_call_output", "call_id": step.call_id, "output": step.text})
        elif step.role == "assistant":
            if step.reasoning:
                part = {"type": "reasoning_text", "text": step.reasoning}
                items.append({"type": "reasoning", "id": "rs", "summary": [], "content": [part]})
            if step.text:
                part = {"type": "output_text", "text": step.text}
                items.append({"type": "message", "role": "assistant", "content": [part]})
            for call in step.calls:
                items.append(
                    {
                        "type": "function_call",
                        "call_id": call.id,
                        "name": call.name,
                        "arguments": _spelt(call),
                    }
                )
        else:
            items.append({"type": "message", "role": step.role, "content": _content(step, "input_text")})
    tools = [{"type": "function", **tool} for tool in made.tools]
    made_body: dict[str, Any] = {"input": items}
    if made.system:
        made_body["instructions"] = "".join(made.system)
    return made_body | ({"tools": tools} if tools else {})
