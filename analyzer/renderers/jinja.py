"""Renders messages through the model's own chat template, as vLLM 0.32 renderers/hf.py does.

Template and special tokens come from the tokenizer's folder; nothing in it is run outside the sandbox.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from analyzer.anthropic_probes import disabled_effort, hello, probe_of, settle
from analyzer.chat_messages import for_template, parse_chat_messages
from analyzer.chat_template import ChatTemplate, TemplateFailed, compile_template
from analyzer.core import Conversation, Rendering
from analyzer.renderers import Job, RenderFailed, tokenized
from analyzer.template_choice import BUNDLED, Choice, choose, server_templates
from analyzer.tokenizer_mode import TEMPLATED, tokenizer_mode_of


class JinjaRenderer:
    """The model's chat template and tokenizer, run here."""

    name = "jinja"
    rank = 40

    def __init__(self) -> None:
        self._efforts: dict[tuple[str, str], str] = {}

    def fits(self, job: Job) -> bool:
        """Whether there are messages, a tokenizer, and a template, or a reason for there being none."""
        tokenizer = job.tokenizer
        if tokenizer is None or not job.conversation.is_chat:
            return False
        given = job.conversation.chat_template or job.settings.chat_template
        known = given or tokenizer.chat_templates or tokenizer.processor_template
        # Some models bring a template that vLLM passes over for an encoder (config/model.py:736-758).
        templated = tokenizer_mode_of(tokenizer, job.settings.tokenizer_mode) in TEMPLATED
        return templated and (bool(known) or tokenizer.model_type in BUNDLED)

    def render(self, job: Job) -> Rendering:
        """Render to text, then tokenize the text, as the server does."""
        return tokenized(job, self.render_text(job), self.name)

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The rendered prompt. Raises RenderFailed where the template or the messages do not allow it."""
        conversation = job.conversation
        if not conversation.is_chat:
            raise RenderFailed("a raw prompt goes through no chat template: take --renderer prompt or auto")
        if not conversation.messages:
            raise RenderFailed("the body has no messages")
        if conversation.continue_final_message and conversation.add_generation_prompt:
            raise RenderFailed(
                "continue_final_message without add_generation_prompt: false, which the server refuses"
            )
        job = replace(job, conversation=self._settled(job))
        choice = choose(job)
        try:
            template = compile_template(choice.template)
            given = _given(job, choice, template, generation_prompt=generation_prompt)
            if job.sourced:
                return template.render_sourced(**given).text
            return template.render(**given)
        except TemplateFailed as error:
            raise RenderFailed(f"the chat template failed: {error}") from error
        except ValueError as error:
            raise RenderFailed(str(error)) from error

    def _settled(self, job: Job) -> Conversation:
        """The conversation after what the server's Anthropic endpoint finds out by its templates."""

        def effort() -> str:
            # A server asks once; so does this, for each template and the arguments it has by default.
            choice = choose(replace(job, conversation=hello()))
            key = choice.template, repr(choice.kwargs)
            if key not in self._efforts:
                self._efforts[key] = disabled_effort(probe_of(job, self.render_text))
            return self._efforts[key]

        return settle(job, lambda: server_templates(job), effort)


def _given(job: Job, choice: Choice, template: ChatTemplate, *, generation_prompt: bool) -> dict[str, Any]:
    """The template's arguments; of the named ones only those it reads (hf.py:715-743)."""
    conversation = job.conversation
    read = template.template_variables()
    special = job.tokenizer.special_tokens(read) if job.tokenizer else {}
    named = {**special, **choice.kwargs}
    messages = parse_chat_messages(conversation.messages, choice.content_format)
    return {
        "messages": for_template(messages, choice.template),
        "tools": choice.tools,
        "documents": named.pop("documents", None),
        "add_generation_prompt": conversation.add_generation_prompt and generation_prompt,
        "continue_final_message": conversation.continue_final_message,
        "clock": job.clock,
        "kwargs": {key: value for key, value in named.items() if key in read},
    }


RENDERER = JinjaRenderer()
