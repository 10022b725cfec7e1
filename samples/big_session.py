"""A long session for benchmarks: 100 turns, the last body 1 MB, about 50 MB of requests in all.

The text is made up by a seeded generator, code-like and prose-like, so that it compresses and tokenises like
a real session. Two runs yield the same bytes.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

type Json = dict[str, Any]
LAST_BODY_BYTES = 1_000_000
NOUNS = """
account anchor batch bucket buffer cable cargo channel client cluster column counter cursor customer
digest driver engine entry event factor field filter folder frame gauge handle header index invoice
item journal key label ledger limit line link lock logger margin marker matrix message meter mirror
module node number object offset order packet parcel parser path payload pool port price queue range
rate reader record region report request result route row sample scale schema segment sensor session
shard signal slot source stage state step stock store stream table tariff task thread ticket timer
token track unit value vector version voyage window
""".split()  # noqa: SIM905
VERBS = """
add apply assign attach bind build check clear collect compare compute copy count create decode
deliver drop emit encode expand fetch fill find flush format freeze group insert join keep load
locate map mark measure merge move open parse pick plan prune pull push read rebuild remove render
replace reserve reset resolve scan select send settle sort split start stop store sum swap trim
update verify walk wrap write
""".split()  # noqa: SIM905
ADJECTIVES = """
active broken closed current daily empty expired final first fixed frozen idle known large late
local lost missing narrow next nested old open pending plain previous ready recent remote short
shared sorted spare stale
""".split()  # noqa: SIM905
PHRASES = (
    "so that nothing is counted twice",
    "because the caller holds the lock already",
    "which is what the tests expect",
    "before the next one arrives",
    "although the documentation says otherwise",
    "when the network is slow",
    "unless somebody changed it by hand",
    "and the rest stays as it was",
)


class TextMaker:
    """Plausible text out of a seed: a project of its own keeps returning to the same names."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        pick = self.random.choice
        self.names = [f"{pick(VERBS)}_{pick(NOUNS)}" for _ in range(160)]
        self.fields = [f"{pick(ADJECTIVES)}_{pick(NOUNS)}" for _ in range(120)] + NOUNS
        self.types = [f"{pick(NOUNS).title()}{pick(NOUNS).title()}" for _ in range(50)]

    def sentence(self) -> str:
        """One sentence of prose."""
        pick = self.random.choice
        start = pick(("The", "Every", "A", "This", "No"))
        middle = f"{pick(ADJECTIVES)} {pick(NOUNS)} has to {pick(VERBS)} its {pick(NOUNS)}"
        return f"{start} {middle} {pick(PHRASES)}."

    def prose(self, size: int) -> str:
        """A paragraph of about `size` characters."""
        text = self.sentence()
        while len(text) < size:
            text += " " + self.sentence()
        return text

    def function(self) -> str:
        """One function of Python-like code."""
        pick, name = self.random.choice, self.random.choice(self.names)
        argument, kind = pick(self.fields), pick(self.types)
        lines = [
            f"    def {name}(self, {argument}: {kind}) -> {pick(self.types)}:",
            f'        """{self.sentence()}"""',
        ]
        for _ in range(self.random.randint(2, 7)):
            lines.append(self._statement(argument))
        return "\n".join([*lines, f"        return self.{pick(self.fields)}", ""])

    def _statement(self, argument: str) -> str:
        pick = self.random.choice
        form = self.random.randrange(5)
        if form == 0:
            code = self.random.randint(100, 9999)
            return f'        if {argument}.{pick(NOUNS)} > {code}:\n            raise ValueError("E{code}")'
        if form == 1:
            loop = f"        for {pick(NOUNS)} in self.{pick(self.fields)}[{self.random.randint(1, 99)}:]:"
            return f"{loop}\n            self.{pick(self.names)}()"
        if form == 2:
            return (
                f"        {pick(NOUNS)} = {pick(self.names)}({argument}, 0x{self.random.getrandbits(16):04x})"
            )
        if form == 3 and pick((True, False)):
            return f"        # {self.sentence()}"
        return f'        self.{pick(self.fields)} = {argument}.{pick(self.names)}("{pick(NOUNS)}")'

    def code(self, size: int) -> str:
        """A numbered source listing of about `size` characters, as a file reader returns it."""
        parts = [f"class {self.random.choice(self.types)}:"]
        while sum(map(len, parts)) < size * 0.86:
            parts.append(self.function())
        lines = "\n".join(parts).splitlines()
        return "\n".join(f"{number:>4}  {line}" for number, line in enumerate(lines, 1))[:size]


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _event(data: Json) -> bytes:
    return b"data: " + _dump(data) + b"\n\n"


def _stream(number: int, said: Json, prompt_tokens: int, cached_tokens: int) -> bytes:
    head = {"id": f"chatcmpl-big-{number:03d}", "object": "chat.completion.chunk", "created": 1772442000}
    words = said["content"].split(" ")
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": " ".join(words[at : at + 3]) + " "} for at in range(0, len(words), 3)]
    deltas += [{"tool_calls": [{"index": 0, **call}]} for call in said["tool_calls"]]
    chunks = [_event({**head, "choices": [{"index": 0, "delta": delta}]}) for delta in deltas]
    chunks.append(_event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}))
    usage: Json = {"prompt_tokens": prompt_tokens, "completion_tokens": len(words)}
    usage["prompt_tokens_details"] = {"cached_tokens": cached_tokens}
    return b"".join([*chunks, _event({**head, "choices": [], "usage": usage}), b"data: [DONE]\n\n"])


def _tools(maker: TextMaker) -> list[Json]:
    text = {"type": "string", "description": maker.sentence()}
    parameters = {"type": "object", "properties": {"path": text}, "required": ["path"]}
    names = ("list_files", "read_file", "search", "edit_file", "run_tests")
    return [
        {
            "type": "function",
            "function": {"name": name, "description": maker.prose(120), "parameters": parameters},
        }
        for name in names
    ]


def big_session(turns: int = 100, last_body_bytes: int = LAST_BODY_BYTES) -> Iterator[tuple[bytes, bytes]]:
    """Request body and event stream of every turn; bodies grow evenly up to `last_body_bytes` exactly.

    The usage in the streams is a guess from the length (4.2 bytes a token): a benchmark's filler, no oracle.
    """
    maker = TextMaker(2026)
    tail = b'],"tools":' + _dump(_tools(maker)) + b',"stream":true,"stream_options":{"include_usage":true}}'
    system = {"role": "system", "content": maker.prose(4000)}
    head = b'{"model":"sample","messages":[' + _dump(system)
    history = bytearray(head + b"," + _dump({"role": "user", "content": maker.prose(600)}))
    before = 0
    for number in range(1, turns + 1):
        goal = last_body_bytes * number // turns
        if number > 1:
            _add_result(history, maker, number, goal - len(tail))
        body = bytes(history) + tail
        arguments = json.dumps({"path": f"{maker.random.choice(maker.names)}.py"})
        call = {"id": f"call_{number:03d}", "type": "function"}
        function = {"function": {"name": "read_file", "arguments": arguments}}
        said: Json = {"role": "assistant", "content": maker.prose(300), "tool_calls": [call | function]}
        yield body, _stream(number, said, len(body) * 10 // 42, before * 10 // 42 // 16 * 16)
        before = len(body)
        history += b"," + _dump(said)


def _add_result(history: bytearray, maker: TextMaker, number: int, goal: int) -> None:
    """Append a tool result that brings the history to `goal` bytes exactly."""
    result: Json = {"role": "tool", "tool_call_id": f"call_{number - 1:03d}", "content": ""}
    room = goal - len(history) - 1 - len(_dump(result))
    text = maker.code(room)
    while (over := len(_dump(text)) - 2 - room) > 0:
        text = text[: -max(1, over // 2)]
    result["content"] = text + " " * -over
    history += b"," + _dump(result)
