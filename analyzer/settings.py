"""The server's own start line, read for what changes prompts and their cache.

Names and spellings are vLLM 0.32's: engine/arg_utils.py, entrypoints/launchers/cli_args.py, and the parser
of utils/argparse_utils.py. Nothing is run; of files only the chat template's is read, by `load_template`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from analyzer.chat_requests import EFFORTS
from analyzer.serve_command import CommandLine, Flag, read_flags, write_flags
from analyzer.told import MOST_EXACT

type FormatOption = Literal["auto", "string", "openai"]

_READ_HIDDEN_STATES = ("eagle", "eagle3", "mtp", "dflash", "dspark")
"""Drafters that read the target's hidden states (config/speculative.py:1944)."""

FACT_PATH = "serve-command"
"""The path under which a capture keeps the start line among what is known of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What a start line says, under vLLM's own names; a field at its default was not said.

    `trust_request_chat_template` is None where there was no start line. `environment` holds the VLLM_
    variables set on the line. `ignored` names the flags that nothing here needs. Sizes are tokens a
    block, blocks, and tokens.
    """

    model: str | None = None
    served_model_name: tuple[str, ...] = ()
    tokenizer: str | None = None
    tokenizer_mode: str = "auto"
    max_model_len: int | None = None
    chat_template: str | None = None
    chat_template_content_format: FormatOption = "auto"
    default_chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    exclude_tools_when_tool_choice_none: bool = False
    anthropic_disabled_thinking_effort: str = "auto"
    trust_request_chat_template: bool | None = None
    block_size: int | None = None
    num_gpu_blocks_override: int | None = None
    enable_prefix_caching: bool | None = None
    prefix_cache_retention_interval: int | None = 0
    prefix_match_unit: int | None = None
    mamba_cache_mode: str | None = None
    disable_hybrid_kv_cache_manager: bool = False
    max_num_batched_tokens: int | None = None
    enable_chunked_prefill: bool | None = None
    async_scheduling: bool | None = None
    speculative_config: Mapping[str, Any] | None = None
    lora_modules: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def drafter(self) -> str | None:
        """The method of speculative decoding; where only a model is said, EAGLE's if that is its name."""
        config = self.speculative_config or {}
        method, model = config.get("method"), str(config.get("model", "")).lower()
        if method is None:
            return next((name for name in ("eagle3", "eagle") if name in model), None)
        if not isinstance(method, str):
            return None
        return "mtp" if method.endswith("mtp") else method

    @property
    def drops_last_block(self) -> bool:
        """Whether speculative decoding gives up a hit's last block (config/speculative.py:1944-1952)."""
        config = self.speculative_config or {}
        return self.drafter in _READ_HIDDEN_STATES and not config.get("disable_eagle_block_drop")


UNTOLD = ServerSettings()
"""The settings where nobody gave a start line."""


def parse_settings(command: str) -> ServerSettings:
    """Read a start line: `vllm serve MODEL --flag ...`, `python -m vllm....`, `docker run ... IMAGE ...`.

    Raises ValueError where it is none, or where a flag that matters has no readable value.
    """
    line = start_line(command)
    said: dict[str, Any] = {"trust_request_chat_template": False}
    ignored: list[str] = []
    for flag in line.flags:
        if flag.name in _SWITCHES:
            said[flag.name] = not flag.negated
        elif flag.name in _SPECULATIVE:
            said["speculative_config"] = {
                **(said.get("speculative_config") or {}),
                _SPECULATIVE[flag.name]: _read(flag, _scalar),
            }
        elif flag.name in _READERS:
            value = _read(flag, _READERS[flag.name])
            if flag.keys and isinstance(said.get(flag.name), Mapping):
                value = _merged(said[flag.name], value)
            said[flag.name] = value
        else:
            ignored.append(flag.name)
    model = said.pop("model", None) or line.model
    return ServerSettings(
        model=model, environment=line.environment, ignored=tuple(dict.fromkeys(ignored)), **said
    )


def note_on_ignored(settings: ServerSettings) -> str | None:
    """One line that names the flags nothing here needs; None where there are none."""
    if not settings.ignored:
        return None
    names = ", ".join(f"--{name.replace('_', '-')}" for name in settings.ignored)
    return f"locality: --serve-command: nothing here depends on {names}"


def worth_keeping(command: str) -> str:
    """A start line for a capture: only what `parse_settings` reads, so that no key or password stays in it.

    A chat template's file that can be read is replaced by its text. Raises as `parse_settings` does.
    """
    line = start_line(command)
    known = (flag for flag in line.flags if flag.name in (*_SWITCHES, *_SPECULATIVE, *_READERS))
    return write_flags(replace(line, flags=tuple(map(_with_text, known))))


def load_template(given: str) -> str:
    """The text of `--chat-template`: a file's where there is one, else the template itself.

    Raises ValueError for the name of a file that is not here: it may be one that vLLM brings along
    (renderers/chat_utils.py:1492-1548).
    """
    if any(char in given for char in "{}\n"):
        return given
    path = Path(given).expanduser()
    try:
        if not path.is_file():  # a device or a pipe may never end
            raise OSError("no such file")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(
            f"the server renders with the chat template {given}, which cannot be read here: put its text or"
            " a path on this machine after --chat-template in --serve-command"
        ) from error


def start_line(command: str) -> CommandLine:
    """The flags of a start line. Raises ValueError where it is none."""
    return read_flags(command, switches=frozenset(_SWITCHES))


def _with_text(flag: Flag) -> Flag:
    if flag.name != "chat_template" or not flag.values:
        return flag
    try:
        return replace(flag, values=(load_template(flag.values[0]),))
    except ValueError:
        return flag


def _read(flag: Flag, reader: Callable[[Flag], Any]) -> Any:
    name = f"--{flag.name.replace('_', '-')}"
    if not flag.values:
        raise ValueError(f"{name} has no value")
    try:
        return reader(flag)
    except RecursionError as error:
        raise ValueError(f"{name} has no value that can be read: it is nested too deeply") from error
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} has no value that can be read: {error}") from error


def _text(flag: Flag) -> str:
    return flag.values[0]


def _texts(flag: Flag) -> tuple[str, ...]:
    return flag.values


def _whole(flag: Flag) -> int | None:
    """A whole number; `1k` is 1000 and `1K` 1024 (arg_utils.py human_readable_int); `auto` is not said."""
    text = flag.values[0]
    if text.lower() in ("auto", "none", "-1"):
        return None
    scale = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1])
    return int(text) if scale is None else int(float(text[:-1]) * scale)


def _size(flag: Flag) -> int | None:
    """A number of tokens or blocks, of which there is at least one."""
    value = _whole(flag)
    if value is not None and not 0 < value < MOST_EXACT:
        raise ValueError(f"{value} is no size")
    return value


def _mapping(flag: Flag) -> Mapping[str, Any]:
    if flag.keys:
        value = _scalar(flag)
        for key in reversed(flag.keys):
            value = {key: value}
    else:
        value = json.loads(flag.values[0])
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _scalar(flag: Flag) -> Any:
    try:
        return json.loads(flag.values[0])
    except ValueError:
        return flag.values[0]


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for key, value in second.items():
        held = merged.get(key)
        both = isinstance(held, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(held, value) if both else value  # type: ignore[arg-type]
    return merged


def _format(flag: Flag) -> FormatOption:
    if flag.values[0] not in get_args(FormatOption.__value__):
        raise ValueError(f"{flag.values[0]!r} is none of auto, string, openai")
    return flag.values[0]  # type: ignore[return-value]


def _effort(flag: Flag) -> str:
    if flag.values[0] not in ("auto", *EFFORTS):
        raise ValueError(f"{flag.values[0]!r} is none of auto, {', '.join(EFFORTS)}")
    return flag.values[0]


def _adapters(flag: Flag) -> tuple[str, ...]:
    """Names of adapters: `name=path`, or JSON with a name (cli_args.py LoRAParserAction)."""
    found: list[str] = []
    for text in flag.values:
        if not text.lstrip().startswith(("{", "[")):
            found.append(text.partition("=")[0])
            continue
        listed = json.loads(text)
        for item in listed if isinstance(listed, list) else [listed]:
            if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                raise ValueError("an adapter without a name")
            found.append(item["name"])
    return tuple(found)


_SWITCHES = (
    "exclude_tools_when_tool_choice_none",
    "trust_request_chat_template",
    "enable_prefix_caching",
    "disable_hybrid_kv_cache_manager",
    "enable_chunked_prefill",
    "async_scheduling",
)
_SPECULATIVE = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}
_READERS: dict[str, Callable[[Flag], Any]] = {
    "model": _text,
    "served_model_name": _texts,
    "tokenizer": _text,
    "tokenizer_mode": _text,
    "max_model_len": _size,
    "chat_template": _text,
    "chat_template_content_format": _format,
    "default_chat_template_kwargs": _mapping,
    "anthropic_disabled_thinking_effort": _effort,
    "block_size": _size,
    "num_gpu_blocks_override": _size,
    "prefix_cache_retention_interval": _whole,
    "prefix_match_unit": _whole,
    "mamba_cache_mode": _text,
    "max_num_batched_tokens": _size,
    "speculative_config": _mapping,
    "lora_modules": _adapters,
}
