"""Where each coding agent takes its server's base URL from, as words and as an example to copy.

It starts nothing and finds out nothing: which of them is in use is not known here.
Source: each was run against a server on loopback, with every variable that `locality run` sets and without
it; opencode 1.18.33, Qwen Code 0.24.4, aider 0.86.2, Codex 0.171.0, Claude Code 2.1.332, Cline 3.0.65,
pi 0.73.1, mini-swe-agent 2.4.6.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One coding agent: where it reads its base URL, and an example of it.

    In `example` the word `{url}` stands for the proxy's base URL, without `/v1`; other braces are its own.
    """

    name: str
    reads: str
    example: str


CLIENTS: tuple[Client, ...] = (
    Client(
        name="opencode",
        reads="~/.config/opencode/opencode.json, provider.NAME.options.baseURL, which may be {env:VARIABLE};"
        " OPENAI_BASE_URL only for the models of its own list of OpenAI's",
        example='{"provider": {"local": {"npm": "@ai-sdk/openai-compatible",'
        ' "options": {"baseURL": "{url}/v1"}, "models": {"MODEL": {}}}}}',
    ),
    Client(
        name="Qwen Code",
        reads="environment variable OPENAI_BASE_URL, with OPENAI_API_KEY and OPENAI_MODEL",
        example="OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY=KEY OPENAI_MODEL=MODEL qwen",
    ),
    Client(
        name="aider",
        reads="environment variable OPENAI_API_BASE or OPENAI_BASE_URL, for a model named openai/MODEL",
        example="OPENAI_API_BASE={url}/v1 OPENAI_API_KEY=KEY aider --model openai/MODEL",
    ),
    Client(
        name="Codex",
        reads="~/.codex/config.toml or -c, openai_base_url, or base_url in [model_providers.NAME];"
        " no environment variable",
        example='codex -c openai_base_url="{url}/v1" -m MODEL',
    ),
    Client(
        name="Claude Code",
        reads="environment variable ANTHROPIC_BASE_URL, without /v1",
        example="ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=KEY claude --model MODEL",
    ),
    Client(
        name="Cline",
        reads="its own settings, written by cline auth (~/.cline/data/settings/providers.json);"
        " no environment variable",
        example="cline auth --provider openai --baseurl {url}/v1 --apikey KEY --modelid MODEL",
    ),
    Client(
        name="pi",
        reads="~/.pi/agent/models.json, providers.NAME.baseUrl; no environment variable",
        example='{"providers": {"local": {"baseUrl": "{url}/v1", "api": "openai-completions",'
        ' "apiKey": "KEY", "models": [{"id": "MODEL"}]}}}',
    ),
    Client(
        name="mini-swe-agent",
        reads="environment variable OPENAI_API_BASE or OPENAI_BASE_URL, for a model named openai/MODEL",
        example="OPENAI_API_BASE={url}/v1 OPENAI_API_KEY=KEY mini -m openai/MODEL",
    ),
)
