"""Decides which chat template renders a request, and with which arguments, as vLLM 0.32 does.

It renders nothing. The rules are those of renderers/hf.py:265-320 and renderers/online_renderer.py:678-697.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzer.chat_messages import ContentFormat
from analyzer.content_format import content_format_of
from analyzer.renderers import Job, RenderFailed
from analyzer.settings import load_template
from analyzer.template_arguments import arguments_of
from analyzer.tokens import Tokenizer

# transformers_utils/chat_templates/registry.py:32-49
BUNDLED = {
    "blip-2": "template_blip2.jinja",
    "clip": "template_basic.jinja",
    "colpali": "template_basic.jinja",
    "deepseek_ocr": "template_deepseek_ocr.jinja",
    "deepseek_ocr2": "template_deepseek_ocr.jinja",
    "deepseek_vl_v2": "template_deepseek_vl2.jinja",
    "minicpmv": "template_chatml.jinja or template_minicpmv45.jinja",
    "minicpmv4_6": "template_chatml.jinja or template_minicpmv45.jinja",
    "minicpmv4_7": "template_chatml.jinja or template_minicpmv45.jinja",
    "paligemma": "template_basic.jinja",
    "siglip": "template_basic.jinja",
    "siglip2": "template_basic.jinja",
    "unlimited-ocr": "template_deepseek_ocr.jinja",
    "unlimited_ocr": "template_deepseek_ocr.jinja",
}
"""Model types for which vLLM brings a template along, and its file's name there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The text of a template, how it wants content, the tools it is given, and its named arguments."""

    template: str
    content_format: ContentFormat
    tools: list[Mapping[str, Any]] | None
    kwargs: Mapping[str, Any]


def choose(job: Job) -> Choice:
    """The template of a request and its arguments. Raises RenderFailed where there is none to be had."""
    kwargs = arguments_of(job)
    tools = kwargs.pop("tools", None)
    inner = kwargs.pop("chat_template", None)
    given = _given_template(job)
    _check_trust(job, inner)
    # A template among the arguments renders, but the format is still read off the one it stands in for.
    base = (
        None
        if given is None and inner is not None and not _has_template(job)
        else _resolve(job, given, tools)
    )
    told = job.settings.chat_template_content_format
    detected: ContentFormat = "string" if base is None else content_format_of(base)
    template = base if given is not None or inner is None else _by_name(job.tokenizer, inner)
    if template is None:
        raise RenderFailed("the server has no chat template for this model")
    return Choice(
        template=template,
        content_format=detected if told == "auto" else told,
        tools=tools,
        kwargs=kwargs,
    )


def server_templates(job: Job) -> list[str]:
    """The templates of a server's requests without and with tools; none where it has not both."""
    try:
        return [_resolve(job, _given_template(job), tools) for tools in (None, ())]
    except RenderFailed:
        return []


def _given_template(job: Job) -> str | None:
    requested = job.conversation.chat_template
    if requested is not None:
        return requested
    if job.settings.chat_template is None:
        return None
    try:
        return load_template(job.settings.chat_template)
    except ValueError as error:
        raise RenderFailed(str(error)) from error


def _check_trust(job: Job, inner: Any) -> None:
    brought = job.conversation.chat_template is not None or inner is not None
    if brought and job.settings.trust_request_chat_template is False:
        raise RenderFailed(
            "the request brings its own chat template, and the server's start line has no"
            " --trust-request-chat-template: such a request is refused"
        )


def _has_template(job: Job) -> bool:
    return job.tokenizer is not None and bool(
        job.tokenizer.chat_templates or job.tokenizer.processor_template
    )


def _resolve(job: Job, given: str | None, tools: Any) -> str:
    """The template given; else the processor's where no tools are given; else the tokenizer's."""
    tokenizer = job.tokenizer
    if given is not None:
        return _by_name(tokenizer, given)
    if tokenizer is None:
        raise RenderFailed("no tokenizer: give --tokenizer DIR")
    if tools is None and tokenizer.processor_template is not None:
        return tokenizer.processor_template
    templates = tokenizer.chat_templates
    if tools is not None and tokenizer.templates_have_names and "tool_use" in templates:
        return templates["tool_use"]
    if "default" in templates:
        return templates["default"]
    raise RenderFailed(_what_is_missing(tokenizer))


def _by_name(tokenizer: Tokenizer | None, given: str) -> str:
    if tokenizer is not None and tokenizer.templates_have_names:
        return tokenizer.chat_templates.get(given, given)
    return given


def _what_is_missing(tokenizer: Tokenizer) -> str:
    if tokenizer.model_type in BUNDLED:
        return (
            f"models of type {tokenizer.model_type} have no chat template of their own: the server renders"
            f" with the one vLLM brings along, {BUNDLED[tokenizer.model_type]}; give its path in"
            " --serve-command, after --chat-template"
        )
    if tokenizer.chat_templates:
        return (
            f"none of the tokenizer's chat templates ({', '.join(tokenizer.chat_templates)}) is the default"
        )
    return "the tokenizer's folder has no chat template: put the server's chat_template.jinja there"
