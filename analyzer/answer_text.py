"""A parsed answer as the model is taken to have written it: as its chat template writes it into a history.

Reasoning and tool-call parsers keep the parts of an answer and drop the text; whether this is that text is
for whoever holds its tokens against the server's count (`analyzer.generated`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analyzer.core import Answer, TokenIds
from analyzer.renderers import Job
from analyzer.rendering import render_text

_ASKED = {"role": "user", "content": "Hello"}
"""What stands before the answer; templates write an answer to one question as they write any."""


def written_answer(job: Job, answer: Answer) -> list[TokenIds]:
    """Its ids, the stop token included where it came to one: as a template writes the newest answer, and as
    it writes an older one, which may differ by the marks of reasoning. Empty where it does not say."""
    tokenizer = job.tokenizer
    if tokenizer is None or not job.conversation.is_chat:
        return []
    stop = tokenizer.special_tokens(["eos_token"]).get("eos_token")
    texts: list[str] = []
    for after in ((), (_ASKED,)):
        try:
            text = _continuation(job, _message(answer), after)
        except Exception:  # a template may raise on anything; then the text is not known
            continue
        if stop is not None and text is not None and stop in text:
            texts.append(text.partition(stop)[0] + (stop if answer.finish == "stop" else ""))
    return tokenizer.encode_apart(list(dict.fromkeys(texts)))


def _continuation(job: Job, message: Mapping[str, Any], after: Sequence[Mapping[str, Any]]) -> str | None:
    def rendered(*messages: Mapping[str, Any], generation_prompt: bool) -> str:
        asked = replace(
            job.conversation,
            messages=messages,
            tools=None,
            add_generation_prompt=generation_prompt,
            continue_final_message=False,
        )
        return render_text(replace(job, conversation=asked), generation_prompt=generation_prompt)

    before = rendered(_ASKED, generation_prompt=True)
    whole = rendered(_ASKED, message, *after, generation_prompt=False)
    return whole[len(before) :] if whole.startswith(before) else None


def _message(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(answer.pieces)}
    if answer.thoughts:
        message["reasoning"] = "".join(answer.thoughts)
    if answer.tool_calls:
        message["tool_calls"] = [
            {"type": "function", "id": str(place), "function": _function(call.name, call.arguments)}
            for place, call in enumerate(answer.tool_calls)
        ]
    return message


def _function(name: str, arguments: str) -> dict[str, Any]:
    json.loads(arguments or "{}")  # a template writes what can be parsed; the rest was written otherwise
    return {"name": name, "arguments": arguments}
