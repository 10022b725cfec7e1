"""The servers that the corpus is for: a tokenizer, a start line, and the templates beside it.

A case names the set-ups it is sent to; one that names none goes to all of PLAIN.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.tokenizers import files_of, folder_of

ROOT = Path(__file__).parent.parent.parent
TEMPLATES = "tests/corpus/templates"
MODELS = ".vllm-models"
SERVED = "served"
"""The model name that every body of the corpus asks for."""

AUTO_TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One way to start a server. `tokenizer` names a real one; `templates` stand in for its own, by name.

    `model_type` is what the model's configuration says, where that decides how it is rendered.
    """

    tokenizer: str
    model: str
    flags: tuple[str, ...] = ()
    templates: dict[str, str] = field(default_factory=dict)
    model_type: str | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """What follows `vllm serve`; paths are relative to the project's folder."""
        return (f"{MODELS}/{self.model}", "--served-model-name", SERVED, *self.flags)

    def make_tokenizer(self, target: Path) -> Path:
        """The folder this server loads: the real one, or a copy with other templates or a model's type."""
        if not self.templates and self.model_type is None:
            return folder_of(self.tokenizer)
        copy_tokenizer(self.tokenizer, target, self.templates)
        if self.model_type is not None:
            (target / "config.json").write_text(json.dumps({"model_type": self.model_type}), encoding="utf-8")
        return target


def copy_tokenizer(name: str, target: Path, templates: dict[str, str]) -> None:
    """Copy a tokenizer; `templates` (name → file in TEMPLATES) replace its own."""
    target.mkdir(parents=True, exist_ok=True)
    for file in files_of(name):
        shutil.copyfile(folder_of(name) / file, target / file)
    if templates:
        path = target / "tokenizer_config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        config["chat_template"] = [
            {"name": name, "template": (ROOT / TEMPLATES / file).read_text(encoding="utf-8")}
            for name, file in templates.items()
        ]
        path.write_text(json.dumps(config), encoding="utf-8")


DUMP = ("--chat-template", f"{TEMPLATES}/dump.jinja")
SETUPS = {
    "qwen3": Setup(tokenizer="qwen3", model="tiny-qwen3", flags=(*AUTO_TOOLS, "hermes")),
    "gemma3": Setup(tokenizer="gemma3", model="gemma3", flags=(*AUTO_TOOLS, "hermes")),
    "llama3_1": Setup(tokenizer="llama3_1", model="llama3_1", flags=(*AUTO_TOOLS, "hermes")),
    "deepseek_v4": Setup(
        tokenizer="deepseek_v4",
        model="deepseek_v4",
        flags=("--tokenizer-mode", "deepseek_v4", *AUTO_TOOLS, "deepseek_v4"),
    ),
    "deepseek_v32": Setup(
        tokenizer="deepseek_v3",
        model="deepseek_v32",
        flags=("--tokenizer-mode", "deepseek_v32", *AUTO_TOOLS, "deepseek_v32"),
    ),
    "gpt-oss": Setup(
        tokenizer="gptoss", model="gpt-oss", model_type="gpt_oss", flags=(*AUTO_TOOLS, "openai")
    ),
    "mistral": Setup(
        tokenizer="mistral",
        model="mistral",
        flags=("--tokenizer-mode", "mistral", *AUTO_TOOLS, "mistral"),
    ),
    "qwen3-dump": Setup(tokenizer="qwen3", model="tiny-qwen3", flags=(*DUMP, *AUTO_TOOLS, "hermes")),
    "qwen3-dump-string": Setup(
        tokenizer="qwen3", model="tiny-qwen3", flags=(*DUMP, "--chat-template-content-format", "string")
    ),
    "qwen3-defaults": Setup(
        tokenizer="qwen3",
        model="tiny-qwen3",
        flags=(
            *AUTO_TOOLS,
            "hermes",
            "--exclude-tools-when-tool-choice-none",
            "--trust-request-chat-template",
            "--default-chat-template-kwargs",
            '{"enable_thinking": false, "greeting": {"from": "server"}}',
        ),
    ),
    "deepseek_v4-defaults": Setup(
        tokenizer="deepseek_v4",
        model="deepseek_v4",
        flags=(
            *("--tokenizer-mode", "deepseek_v4", *AUTO_TOOLS, "deepseek_v4"),
            "--exclude-tools-when-tool-choice-none",
            "--default-chat-template-kwargs",
            '{"thinking": false, "drop_thinking": false}',
        ),
    ),
    "qwen3-named": Setup(
        tokenizer="qwen3",
        model="qwen3-named",
        flags=(*AUTO_TOOLS, "hermes"),
        templates={"default": "default.jinja", "tool_use": "tool_use.jinja"},
    ),
}
PLAIN = ("qwen3", "gemma3", "llama3_1", "deepseek_v4", "gpt-oss")

CACHED = {
    "sliding window": Setup(
        tokenizer="gemma3",
        model="gemma3-window",
        flags=("--max-model-len", "8192", "--block-size", "32"),
    ),
    "hybrid": Setup(tokenizer="qwen3", model="qwen3-next", flags=("--max-model-len", "16384")),
}
"""Servers of other attention than full: for their cache alone, no case of the corpus is sent to them."""

ALSO = {
    "deepseek_v4": "deepseek_v32",
    "gpt-oss": "mistral",
    "qwen3-defaults": "deepseek_v4-defaults",
}
"""A case for the one is for the other too. V3.2 is rendered with V3's tokenizer, the nearest at hand."""
