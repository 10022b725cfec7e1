"""Takes a start line apart, as vLLM's own argument parser does (vLLM 0.32 utils/argparse_utils.py:276-440).

It knows spellings, and no flag's meaning.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

HOW_TO_GIVE = 'give the line that starts the server, such as "vllm serve MODEL --block-size 32"'

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_OPERATOR = re.compile(r"[0-9]*[<>].*|&>.*|[&|;]+")
_SHORT = {"-sc": "speculative_config", "-tp": "tensor_parallel_size", "-pp": "pipeline_parallel_size"}
# Flags without a value that are often seen: what follows one of them may be the model.
_OTHER_SWITCHES = frozenset(
    "enforce_eager trust_remote_code enable_auto_tool_choice enable_expert_parallel language_model_only"  # noqa: SIM905
    " enable_lora enable_prompt_tokens_details enable_sleep_mode"
    " enable_log_requests disable_log_stats enable_force_include_usage enable_scale_out"
    " enable_tokenizer_info_endpoint".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag: its name with underscores, the members it names (`--flag.a.b`), and its values as text.

    `negated` says that it was written `--no-NAME`.
    """

    name: str
    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A start line in pieces. `environment` holds the VLLM_ variables that are set on it, and no others."""

    model: str | None
    flags: tuple[Flag, ...]
    environment: Mapping[str, str]


def read_flags(command: str, *, switches: frozenset[str]) -> CommandLine:
    """Take a start line apart; `switches` are the flags without a value.

    Raises ValueError where it starts no vLLM server.
    """
    try:
        words = shlex.split(command.replace("\\\r\n", " ").replace("\\\n", " "))
    except ValueError as error:
        raise ValueError(f"the start line cannot be read ({error}); {HOW_TO_GIVE}") from error
    end = next((at for at, word in enumerate(words) if _OPERATOR.fullmatch(word)), len(words))
    before, after = _split(words[:end])
    model, rest = (after[0], after[1:]) if after and not after[0].startswith("-") else (None, after)
    flags: list[Flag] = []
    for item in _flags(rest, switches | _OTHER_SWITCHES):
        if isinstance(item, Flag):
            flags.append(item)
        else:
            model = model or item
    return CommandLine(model=model, flags=tuple(flags), environment=dict(_environment(before)))


def write_flags(line: CommandLine) -> str:
    """A start line that says the same."""
    words = [f"{name}={value}" for name, value in line.environment.items()]
    words += ["vllm", "serve", *([line.model] if line.model else [])]
    for flag in line.flags:
        name = "-".join(["--no"] * flag.negated + [flag.name.replace("_", "-")])
        name = name if flag.negated else f"--{name}"
        words += [".".join([name, *flag.keys]), *flag.values]
    return shlex.join(words)


def _split(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before the server's own arguments, and these."""
    for at, word in enumerate(words):
        name, following = PurePath(word).name, words[at + 1 : at + 3]
        if name == "vllm" and following[:1] == ["serve"]:
            return words[:at], words[at + 2 :]
        if name == "vllm" and following == ["launch", "render"]:
            return words[:at], words[at + 3 :]
        if word == "-m" and following and following[0].startswith("vllm.entrypoints."):
            module_end = at + 2
            return words[:at], words[module_end + (words[module_end : module_end + 1] == ["serve"]) :]
    if words and PurePath(words[0]).name in ("docker", "podman", "nerdctl", "sudo"):
        for at, word in enumerate(words):
            if "vllm" in word.rpartition("/")[2] and not word.startswith("-") and "=" not in word:
                return words[:at], words[at + 1 :]
    if words and words[0].startswith("--"):
        return (), words
    raise ValueError(f"this starts no vLLM server; {HOW_TO_GIVE}")


def _flags(words: Sequence[str], switches: frozenset[str]) -> Iterator[Flag | str]:
    """Each flag with its values; a word that belongs to no flag as it stands."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not _is_flag(word):
            yield word
            continue
        written, equals, value = word.partition("=")
        flag = _named(written)
        taken: list[str] = [value] if equals else []
        if not equals and flag.name not in switches and not flag.negated:
            while at < len(words) and not _is_flag(words[at]):
                taken.append(words[at])
                at += 1
                if flag.keys:  # a member takes one value
                    break
        yield _listed(Flag(name=flag.name, keys=flag.keys, values=tuple(taken), negated=flag.negated))


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit()


def _named(written: str) -> Flag:
    if not written.startswith("--"):
        return Flag(name=_SHORT.get(written, written.lstrip("-")))
    name, *keys = written[2:].split(".")
    name = name.replace("-", "_")
    negated = name.startswith("no_")
    return Flag(name=name.removeprefix("no_"), keys=tuple(keys), negated=negated)


def _listed(flag: Flag) -> Flag:
    """`--flag.key+ a,b` appends to a list (argparse_utils.py:417)."""
    if not flag.keys or not flag.keys[-1].endswith("+") or not flag.values:
        return flag
    keys = (*flag.keys[:-1], flag.keys[-1][:-1])
    return Flag(name=flag.name, keys=keys, values=(json.dumps(flag.values[0].split(",")),))


def _environment(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Assignments before the command, also those given to docker with -e; others' secrets stay out."""
    for word in words:
        text = word.removeprefix("--env=").removeprefix("-e")
        if _ASSIGNMENT.fullmatch(text) and text.startswith("VLLM_"):
            name, _, value = text.partition("=")
            yield name, value
