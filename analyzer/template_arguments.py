"""The arguments of a rendering: the server's defaults, and over them the request's own.

Chat templates and the encoders written in Python take the same ones (vLLM 0.32 renderers/params.py:36-48 and
104-145, renderers/online_renderer.py:282-287).
"""

from __future__ import annotations

from typing import Any

from analyzer.renderers import Job

_OVERRIDDEN = ("add_generation_prompt", "continue_final_message")
"""The request's own fields, or their defaults, always win over arguments of these names."""


def arguments_of(job: Job) -> dict[str, Any]:
    """The server's defaults, then the request's arguments; None and "auto" never override."""
    conversation, settings = job.conversation, job.settings
    tools = None if withholds_tools(job) or conversation.tools is None else list(conversation.tools)
    overrides = [("tools", tools), *conversation.template_kwargs.items()]
    kwargs = dict(settings.default_chat_template_kwargs)
    kwargs |= {key: value for key, value in overrides if value is not None and value != "auto"}
    return {key: value for key, value in kwargs.items() if key not in ("tokenize", *_OVERRIDDEN)}


def withholds_tools(job: Job) -> bool:
    """Whether the server keeps tools from the model that the request forbids it to call."""
    return job.settings.exclude_tools_when_tool_choice_none and job.conversation.tool_choice == "none"
