"""A scripted model behind real chat template and real tokenizer: what it counts is what a report must say.

It shares no code with the analyzer, and it never evicts. Its prefix cache is brute force on purpose: the
longest run of whole blocks in common with any earlier sequence, the last prompt token always computed
(vLLM 0.32 v1/core/kv_cache_manager.py, `max_cache_hit_length`).
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from samples import upstream_wire as wire
from samples.session import Answer
from samples.upstream import WRITERS, Engine, Handler, SampleUpstream
from samples.upstream_prompt import chat_messages, chat_tools, responses_body
from tests.clients.contract import MODEL

type Json = dict[str, Any]
type IsSide = Callable[[Json], bool]
BLOCK_SIZE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One answered request: which of the script's answers it got (None: beside the task), and its tokens.

    `common_tokens` is what its prompt has in common with that of the task's request before.
    """

    path: str
    number: int | None
    prompt_ids: list[int]
    common_tokens: int | None
    cached_tokens: int


class ScriptedModel(Engine):
    """Gives the script's answers in order, one a request, and `aside` to requests beside the task.

    It counts requests, not assistant messages: some clients rewrite their history.
    """

    def __init__(self, folder: Path, answers: Sequence[Answer], is_side: IsSide, aside: Answer) -> None:
        from transformers import AutoTokenizer

        self.folder, self.block_size, self.pool_blocks = folder, BLOCK_SIZE, 131072
        self.answers, self.is_side, self.aside = answers, is_side, aside
        self.tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        self.sequences: list[list[int]] = []
        self.answered: list[Answered] = []

    def reply(self, path: str, body: Json) -> wire.Reply:
        """Answer one request. The handler takes them one after another."""
        task = [one for one in self.answered if one.number is not None]
        number = None if self.is_side(body) else len(task)
        answer = self.aside if number is None else self.answers[min(number, len(self.answers) - 1)]
        prompt_ids = self.prompt_ids(path, body)
        before = task[-1].prompt_ids if task and number is not None else None
        token_ids = self.tokenizer.encode(_as_written(answer), add_special_tokens=False)
        cached = self.hit(prompt_ids)
        # The last sampled token is never computed: vLLM 0.32 v1/core/sched/async_scheduler.py:75.
        self.sequences.append([*prompt_ids, *token_ids[:-1]])
        self.answered.append(
            Answered(
                path=path,
                number=number,
                prompt_ids=prompt_ids,
                common_tokens=None if before is None else _common(prompt_ids, before),
                cached_tokens=cached,
            )
        )
        options = body.get("stream_options") or {}
        return wire.Reply(
            id=f"{WRITERS[path][0]}-{len(self.answered):06d}",
            model=body["model"],
            answer=answer,
            prompt_ids=prompt_ids,
            token_ids=token_ids,
            cached_tokens=cached,
            created_tokens=max(0, len(prompt_ids) // BLOCK_SIZE * BLOCK_SIZE - cached),
            include_usage=bool(options.get("include_usage")),
        )

    def prompt_ids(self, path: str, body: Json) -> list[int]:
        """The prompt as the tokenizer's own chat template writes it."""
        if path == "/v1/responses":
            messages, tools = responses_body(body)
        else:
            messages, tools = chat_messages(body["messages"]), chat_tools(body.get("tools"))
        shown: list[Any] | None = tools or None
        text = self.tokenizer.apply_chat_template(
            messages, tools=shown, add_generation_prompt=True, tokenize=False
        )
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def models(self) -> Json:
        """What /v1/models says: one model, under the name that every client asks for."""
        said = super().models()
        said["data"][0]["id"] = MODEL
        return said

    def hit(self, prompt_ids: list[int]) -> int:
        """Prompt tokens that earlier sequences left in whole blocks."""
        longest = max((_common(prompt_ids, earlier) for earlier in self.sequences), default=0)
        return min(longest, len(prompt_ids) - 1) // BLOCK_SIZE * BLOCK_SIZE


def _common(one: list[int], other: list[int]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _as_written(answer: Answer) -> str:
    """The text that a Qwen3 samples for an answer: the form its tool parser (`hermes`) reads."""
    calls = [
        f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>'
        for call in answer.calls
    ]
    said = "\n".join(part for part in (answer.content, *calls) if part)
    return f"<think>\n{answer.reasoning}\n</think>\n\n{said}<|im_end|>"


class RecordingHandler(Handler):
    """Keeps every body that came, and every answer that was given, byte for byte."""

    server: ClientUpstream

    def do_POST(self) -> None:  # noqa: N802 (its base class's name)
        """One request after another, so that bodies and answers are in one order."""
        with self.server.one_at_a_time:
            super().do_POST()

    def body(self) -> bytes:
        """The request's body, kept in the order of arrival."""
        raw = super().body()
        self.wire = Wire(path=self.path, asked=raw)
        self.server.wires.append(self.wire)
        return raw

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        if self.command == "POST":
            self.wire.said = body
        super()._send(status, body, kind)

    def _stream(self, events: Iterator[bytes]) -> None:
        super()._stream(self._kept(events))

    def _kept(self, events: Iterator[bytes]) -> Iterator[bytes]:
        for event in events:
            self.wire.said += event
            yield event


@dataclass(slots=True, kw_only=True)
class Wire:
    """What came with one request, and what went back."""

    path: str
    asked: bytes
    said: bytes = b""


class ClientUpstream(SampleUpstream):
    """The server for one client's run."""

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(model, handler=RecordingHandler)
        self.model = model
        self.wires: list[Wire] = []
        self.one_at_a_time = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that the other side reset: Codex leaves so, once it has its answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def save(self, folder: Path) -> None:
        """Write down what went over the wire, two files a request, and what was answered."""
        for number, seen in enumerate(self.wires):
            (folder / f"{number:03d}.asked").write_bytes(seen.asked)
            (folder / f"{number:03d}.said").write_bytes(seen.said)
        paths = [seen.path for seen in self.wires]
        answered = [asdict(one) for one in self.model.answered]
        (folder / "answered.json").write_text(json.dumps([paths, answered]), encoding="utf-8")
