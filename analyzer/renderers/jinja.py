"""Renders messages through the model's own chat template, as vLLM 0.32 renderers/hf.py does.

Template and special tokens come from the tokenizer's folder; nothing in it is run outside the sandbox.
"""

from __future__ import annotations

from typing import Any

from analyzer.chat_messages import parse_chat_messages
from analyzer.chat_template import ChatTemplate, TemplateFailed, compile_template
from analyzer.content_format import content_format_of
from analyzer.core import Rendering
from analyzer.renderers import Job, RenderFailed
from analyzer.tokenizer_mode import tokenizer_mode_of


class JinjaRenderer:
    """The model's chat template and tokenizer, run here."""

    name = "jinja"
    rank = 40

    def fits(self, job: Job) -> bool:
        """Whether there are messages, and a template that the server would use."""
        tokenizer = job.tokenizer
        if not job.conversation.messages or tokenizer is None:
            return False
        # Some models bring a template that vLLM passes over for an encoder (config/model.py:736-758).
        return bool(tokenizer.chat_templates) and tokenizer_mode_of(tokenizer) in ("hf", "kimi_audio")

    def render(self, job: Job) -> Rendering:
        """Render to text, then tokenize the text, as the server does."""
        text = self.render_text(job)
        if job.tokenizer is None:
            raise RenderFailed("no tokenizer: give --tokenizer DIR")
        ids = job.tokenizer.encode(text, add_special_tokens=job.conversation.add_special_tokens)
        return Rendering(token_ids=ids, source=self.name, text=text)

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The rendered prompt. Raises RenderFailed where the template or the messages do not allow it."""
        try:
            template = compile_template(_template_source(job))
            given = _given(job, template, generation_prompt=generation_prompt)
            if job.sourced:
                return template.render_sourced(**given).text
            return template.render(**given)
        except (TemplateFailed, ValueError) as error:
            raise RenderFailed(f"the chat template failed: {error}") from error


def _given(job: Job, template: ChatTemplate, *, generation_prompt: bool) -> dict[str, Any]:
    """The template's arguments; of the named ones only those it reads (hf.py:715-743)."""
    conversation = job.conversation
    named = {**(job.tokenizer.special_tokens if job.tokenizer else {}), **conversation.template_kwargs}
    read = template.template_variables()
    return {
        "messages": parse_chat_messages(conversation.messages, content_format_of(template.source)),
        "tools": conversation.tools,
        "documents": named.pop("documents", None),
        "add_generation_prompt": conversation.add_generation_prompt and generation_prompt,
        "continue_final_message": conversation.continue_final_message,
        "clock": job.clock,
        "kwargs": {key: value for key, value in named.items() if key in read},
    }


def _template_source(job: Job) -> str:
    """The `tool_use` template where tools are given and there is one, else the default (hf.py:265-320)."""
    templates = job.tokenizer.chat_templates if job.tokenizer else {}
    name = "tool_use" if job.conversation.tools is not None and "tool_use" in templates else "default"
    if name not in templates:
        raise RenderFailed(
            "the tokenizer's folder has no chat template: put the server's chat_template.jinja there"
        )
    return templates[name]


RENDERER = JinjaRenderer()
