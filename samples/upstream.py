"""A scripted upstream on 127.0.0.1 that speaks vLLM's endpoints and counts its own tokens and cache hits.

It holds no model: its answers are those of samples/session.py, chosen by how many a request holds already.
Run it with `python -m samples.upstream --tokenizer DIR`.
"""

import argparse
import itertools
import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from samples import upstream_wire as wire
from samples.session import Answer, load_session
from samples.tokenizer import make_tokenizer_folder
from samples.upstream_prompt import (
    EOS,
    PrefixCache,
    PromptRenderer,
    chat_messages,
    chat_tools,
    messages_body,
    responses_body,
)

type Json = dict[str, Any]
VERSION = "0.32.0"
WRITERS = {
    "/v1/chat/completions": ("chatcmpl", wire.chat_json, wire.chat_events),
    "/v1/completions": ("cmpl", wire.completion_json, wire.completion_events),
    "/v1/messages": ("msg", wire.messages_json, wire.messages_events),
    "/v1/responses": ("resp", wire.responses_json, wire.responses_events),
}


class Engine:
    """The part that would be a model server: prompts in, scripted answers and counted tokens out."""

    def __init__(self, folder: Path, block_size: int = 16, pool_blocks: int = 131072) -> None:
        self.folder, self.block_size, self.pool_blocks = folder, block_size, pool_blocks
        self.renderer = PromptRenderer(folder)
        self.cache = PrefixCache(block_size)
        self._ids = itertools.count(1)
        self._lock = threading.Lock()

    def prompt(self, path: str, body: Json) -> tuple[list[Json], list[Json], list[int]]:
        """Messages and tools as the template sees them (none for completions), and the prompt's token ids."""
        if path == "/v1/completions":
            prompt = body["prompt"]
            return [], [], self.renderer.encode(prompt) if isinstance(prompt, str) else prompt
        if path == "/v1/messages":
            messages, tools = messages_body(body)
        elif path == "/v1/responses":
            messages, tools = responses_body(body)
        else:
            messages, tools = chat_messages(body["messages"]), chat_tools(body.get("tools"))
        return messages, tools, self.renderer.encode(self.renderer.render(messages, tools))

    def reply(self, path: str, body: Json) -> wire.Reply:
        """Answer one request; the cache is read and written under one lock, so in order of arrival."""
        messages, tools, prompt_ids = self.prompt(path, body)
        answer = self._answer(messages, prompt_ids)
        if path == "/v1/completions":
            answer = Answer(content=answer.content)
            token_ids = self.renderer.encode(answer.content + EOS)
        else:
            token_ids = self._answer_ids(messages, tools, answer)
        with self._lock:
            cached = self.cache.hit(prompt_ids)
            # The last sampled token has no registered block: vLLM 0.32 v1/core/sched/async_scheduler.py.
            self.cache.keep((prompt_ids + token_ids)[:-1])
            number = next(self._ids)
        whole = len(prompt_ids) // self.block_size * self.block_size
        return wire.Reply(
            id=f"{WRITERS[path][0]}-{number:06d}",
            model=body.get("model", "sample"),
            answer=answer,
            prompt_ids=prompt_ids,
            token_ids=token_ids,
            cached_tokens=cached,
            created_tokens=max(0, whole - cached),
            return_token_ids=bool(body.get("return_token_ids")),
            include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        )

    def _answer(self, messages: list[Json], prompt_ids: list[int]) -> Answer:
        turns = load_session().turns
        if messages:
            number = len([message for message in messages if message["role"] == "assistant"])
        else:
            number = max(0, prompt_ids.count(self.renderer.assistant_id) - 1)
        return turns[min(number, len(turns) - 1)].answer

    def _answer_ids(self, messages: list[Json], tools: list[Json], answer: Answer) -> list[int]:
        """What a model would have sampled to say this: the template's own text of the answer."""
        calls = [{"function": {"name": c.name, "arguments": json.loads(c.arguments)}} for c in answer.calls]
        said = {
            "role": "assistant",
            "content": answer.content,
            "reasoning": answer.reasoning,
            "tool_calls": calls,
        }
        before = self.renderer.render(messages, tools)
        after = self.renderer.render([*messages, said], tools, generate=False)
        return self.renderer.encode(after.removeprefix(before))

    def models(self) -> Json:
        """What /v1/models says."""
        card = {"id": "sample", "object": "model", "created": wire.CREATED, "owned_by": "vllm"}
        return {
            "object": "list",
            "data": [{**card, "root": str(self.folder), "parent": None, "max_model_len": 1048576}],
        }

    def metrics(self) -> str:
        """The one line of /metrics that tells the block size."""
        labels = {
            "block_size": self.block_size,
            "cache_dtype": "auto",
            "enable_prefix_caching": True,
            "num_gpu_blocks": self.pool_blocks,
            "prefix_caching_hash_algo": "sha256",
            "sliding_window": None,
        }
        text = ",".join(f'{name}="{value}"' for name, value in labels.items())
        return (
            "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
            "# TYPE vllm:cache_config_info gauge\n"
            f"vllm:cache_config_info{{{text}}} 1.0\n"
        )


class Handler(BaseHTTPRequestHandler):
    """Routes of the upstream."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "SampleUpstream"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: stderr holds the listening line only."""

    def do_GET(self) -> None:
        """What the server tells about itself."""
        engine, path = self.server.engine, self.path.partition("?")[0]
        if path == "/metrics":
            self._send(200, engine.metrics().encode(), "text/plain; version=0.0.4")
        elif path in ("/version", "/v1/models", "/health"):
            answers = {"/version": {"version": VERSION}, "/v1/models": engine.models(), "/health": {}}
            self._send(200, wire.dumps(answers[path]).encode())
        else:
            self._send(404, b'{"detail":"Not Found"}')

    def do_HEAD(self) -> None:
        """The same without the body."""
        self.do_GET()

    def do_POST(self) -> None:
        """The four dialects; a body that cannot be read is a 400."""
        raw, path = self.body(), self.path.partition("?")[0]
        if path not in WRITERS:
            self._send(404, b'{"detail":"Not Found"}')
            return
        try:
            body = json.loads(raw)
            reply = self.server.engine.reply(path, body)
        except Exception as error:  # a fixture reports whatever is wrong with a body as the client's fault
            detail = {"message": f"{type(error).__name__}: {error}", "type": "BadRequestError", "code": 400}
            self._send(400, wire.dumps({"error": detail}).encode())
            return
        _, as_json, as_events = WRITERS[path]
        if body.get("stream"):
            self._stream(as_events(reply))
        else:
            self._send(200, wire.dumps(as_json(reply)).encode())

    def body(self) -> bytes:
        """The request's body as it came."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _stream(self, events: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for data in events:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                time.sleep(self.server.delay)
            self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            self.close_connection = True


class SampleUpstream(ThreadingHTTPServer):
    """The server; `url` is its address. Use `start()` and `stop()` from tests."""

    daemon_threads = True

    def __init__(
        self, engine: Engine, port: int = 0, delay_ms: float = 0, handler: type[Handler] = Handler
    ) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.engine, self.delay = engine, delay_ms / 1000

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.server_port}"

    def start(self) -> "SampleUpstream":
        """Serve in a thread of its own."""
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        """End serving and free the port."""
        self.shutdown()
        self.server_close()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A scripted upstream for the samples.")
    parser.add_argument(
        "--tokenizer", type=Path, required=True, help="tokenizer folder; made if it is missing"
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--block-size", type=int, default=16)
    parser.add_argument("--delay-ms", type=float, default=0, help="between events of a stream")
    options = parser.parse_args()
    engine = Engine(make_tokenizer_folder(options.tokenizer), options.block_size)
    engine.renderer.render([{"role": "user", "content": "warm up"}], None)
    server = SampleUpstream(engine, options.port, options.delay_ms)
    print(f"listening on {server.url}", file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
