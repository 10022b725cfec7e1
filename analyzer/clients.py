"""Where each coding agent takes its server's base URL from, as words and as an example to copy.

It starts nothing and finds out nothing: which of them is in use is not known here.
Source: each client run against a loopback server, in the version named in `tests/clients`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One coding agent: where it reads its base URL, and an example with `{url}` for the proxy's."""

    name: str
    reads: str
    example: str


CLIENTS: tuple[Client, ...] = (
    Client(
        name="opencode",
        reads="~/.config/opencode/opencode.json, provider.NAME.options.baseURL; no environment variable",
        example=(
            '{"provider": {"local": {"npm": "@ai-sdk/openai-compatible",'
            ' "options": {"baseURL": "{url}/v1"}, "models": {"MODEL": {}}}}}'
        ),
    ),
    Client(
        name="Qwen Code",
        reads="environment variable OPENAI_BASE_URL",
        example="OPENAI_BASE_URL={url}/v1 OPENAI_MODEL=MODEL qwen --auth-type openai",
    ),
    Client(
        name="aider",
        reads="environment variable OPENAI_API_BASE",
        example="OPENAI_API_BASE={url}/v1 aider --model openai/MODEL",
    ),
    Client(
        name="Codex",
        reads="~/.codex/config.toml, [model_providers.NAME] base_url",
        example=(
            'model_provider = "local"\n'
            "[model_providers.local]\n"
            'name = "local"\n'
            'base_url = "{url}/v1"\n'
            'wire_api = "responses"'
        ),
    ),
    Client(
        name="Claude Code",
        reads="environment variable ANTHROPIC_BASE_URL, without /v1",
        example="ANTHROPIC_BASE_URL={url} claude --model MODEL",
    ),
    Client(
        name="Cline",
        reads="its own settings, provider OpenAI Compatible, field Base URL",
        example="{url}/v1",
    ),
    Client(
        name="pi",
        reads="~/.pi/agent/models.json, providers.NAME.baseUrl",
        example=(
            '{"providers": {"local": {"baseUrl": "{url}/v1", "api": "openai-completions",'
            ' "apiKey": "KEY", "models": [{"id": "MODEL"}]}}}'
        ),
    ),
    Client(
        name="mini-swe-agent",
        reads="environment variable OPENAI_API_BASE",
        example="OPENAI_API_BASE={url}/v1 mini -m openai/MODEL",
    ),
)
