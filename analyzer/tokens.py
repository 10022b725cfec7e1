"""Text to token ids with a server's own tokenizer files, and what a chat template sees of them.

Nothing is downloaded and no code from the folder is run. `fastokens` gives the same ids as `tokenizers`
at some twenty times the speed; where it cannot load a file, `tokenizers` does the work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from analyzer.core import TokenIds
from analyzer.prefix_encoding import PrefixEncoder, cut_tokens
from analyzer.rebuilt_tokenizer import is_rebuilt, rebuilt

_NO_NORMALIZER = re.compile(
    rb'"normalizer"\s*:\s*(?:null|\{\s*"type"\s*:\s*"Sequence"\s*,\s*"normalizers"\s*:\s*\[\s*\]\s*\})'
)
_FLAGS = ("lstrip", "rstrip", "single_word", "normalized")

TEMPLATE_FILE, TEMPLATE_FOLDER = "chat_template.jinja", "additional_chat_templates"
_NOT_TOKENS = ("add_bos_token", "add_eos_token")
_PLAIN_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Tokenizer classes that bring no special tokens of their own."""


class TokenizerError(Exception):
    """A tokenizer folder that cannot be used, and why."""


class Tokenizer:
    """One folder: `tokenizer.json` (or Mistral's `tekken.json`), its configuration, maybe a template."""

    def __init__(self, directory: Path) -> None:
        """Load the files of `directory`; raises TokenizerError naming the one that is missing or broken."""
        self.directory = directory
        self.config = _read_json(directory / "tokenizer_config.json", required=False)
        self.model_config = _read_json(directory / "config.json", required=False)
        path = directory / "tokenizer.json"
        if path.is_file():
            loaded = _load(path)
            if is_rebuilt(self.config, self.model_type, {token["content"] for token in loaded.added}):
                # What it does at a text's beginning is not known: no cuts.
                loaded, cuts = _load_rebuilt(directory, self.config, self.model_type), {}
            else:
                cuts = cut_tokens(loaded.added, normalizes=_normalizes(path))
        elif (tekken := directory / "tekken.json").is_file():
            loaded, cuts = _load_tekken(tekken), {}
        else:
            raise TokenizerError(f"{directory} holds no tokenizer.json; give the folder of the served model")
        self.backend, self._encode = loaded.name, loaded.encode
        self._shared = PrefixEncoder(lambda texts: loaded.encode(texts, False), cuts)

    def encode(self, text: str, *, add_special_tokens: bool = False) -> TokenIds:
        """Token ids of `text`, shape (tokens,). Special tokens written in the text are recognised.

        What a text shares with the last ones is not tokenized again; the array must not be changed.
        """
        if add_special_tokens:
            return self._encode([text], True)[0]
        return self._shared.encode(text)

    def encode_apart(self, texts: Sequence[str]) -> list[TokenIds]:
        """Token ids of each text, of which nothing is kept for later ones: answers share no beginning."""
        return self._encode(texts, False)

    @cached_property
    def chat_templates(self) -> dict[str, str]:
        """Chat templates by name; the only one of most models is called `default`.

        Files count before the configuration (transformers 5.19 tokenization_utils_base.py:1785).
        """
        found = {path.stem: _text(path) for path in (self.directory / TEMPLATE_FOLDER).glob("*.jinja")}
        if (self.directory / TEMPLATE_FILE).is_file():
            found["default"] = _text(self.directory / TEMPLATE_FILE)
        given = self.config.get("chat_template")
        if not found and isinstance(given, list):
            return {item["name"]: item["template"] for item in given}
        return found or ({"default": given} if isinstance(given, str) else {})

    @property
    def templates_have_names(self) -> bool:
        """Whether a request may choose a template by name: a single one has none."""
        return len(self.chat_templates) > 1 or isinstance(self.config.get("chat_template"), list)

    @cached_property
    def processor_template(self) -> str | None:
        """The multimodal processor's chat template, where the folder holds a processor with one.

        Its old file counts before the new one (transformers 5.19 processing_utils.py:1398-1451).
        """
        processor = self.directory / "processor_config.json"
        if not processor.is_file() and not (self.directory / "preprocessor_config.json").is_file():
            return None
        own = _read_json(processor, required=False).get("chat_template")
        old = _read_json(self.directory / "chat_template.json", required=False).get("chat_template")
        new = self.directory / TEMPLATE_FILE
        for template in (own, old, _text(new) if new.is_file() else None):
            if isinstance(template, str):
                return template
        return None

    @cached_property
    def model_type(self) -> str | None:
        """The architecture that the folder's config.json names."""
        found = self.model_config.get("model_type")
        return found if isinstance(found, str) else None

    def special_tokens(self, names: Collection[str]) -> dict[str, str]:
        """Of `names`, those that are special tokens (`bos_token`, `image_token`, ...), with their text.

        The configuration names most. A tokenizer class brings others along; transformers knows them, and
        is asked only where one of `names` may be such a token.
        """
        asked = [name for name in names if name in self._named_tokens or name.endswith("_token")]
        if self._brings_tokens and any(name not in self._named_tokens for name in asked):
            known: Mapping[str, str | None] = self._all_tokens
        else:
            known = self._named_tokens
        return {name: text for name in asked if (text := known.get(name)) is not None}

    @cached_property
    def _named_tokens(self) -> dict[str, str | None]:
        """As transformers 5.19 reads them (tokenization_utils_base.py:1812-1890); None: said to be none."""
        said = dict(self.config)
        if "added_tokens_decoder" not in said:
            said |= _read_json(self.directory / "special_tokens_map.json", required=False)
        for holder in ("extra_special_tokens", "model_specific_special_tokens"):
            if isinstance(said.get(holder), dict):
                said |= {name: value for name, value in said[holder].items() if name not in _NOT_TOKENS}
        extra = said.get("extra_special_tokens")
        names = [name for name in said if name.endswith("_token") and name not in _NOT_TOKENS]
        names += [name for name in (extra if isinstance(extra, dict) else {}) if name not in names]
        return {name: _content(said[name]) for name in names}

    @property
    def _brings_tokens(self) -> bool:
        return self.config.get("tokenizer_class") not in (None, *_PLAIN_CLASSES)

    @cached_property
    def _all_tokens(self) -> dict[str, str]:
        from transformers import AutoTokenizer

        try:
            loaded = AutoTokenizer.from_pretrained(
                str(self.directory), local_files_only=True, trust_remote_code=False
            )
        except Exception:  # the configuration's own words are then all there is
            return {name: text for name, text in self._named_tokens.items() if text is not None}
        return dict(loaded.special_tokens_map)


def _content(value: Any) -> str | None:
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else None


@cache
def start_loading(directory: Path) -> Future[Tokenizer]:
    """Load a folder in a thread, once a process: a second's work, most of it outside the interpreter's lock.

    The future's result raises as `Tokenizer` does.
    """
    loading: Future[Tokenizer] = Future()

    def load() -> None:
        try:
            loading.set_result(Tokenizer(directory))
        except Exception as error:
            loading.set_exception(error)

    Thread(target=load, name="locality-tokenizer", daemon=True).start()
    return loading


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Backend:
    """A loaded tokenizer: `encode` gives each text's ids; `added` are its `added_tokens` entries."""

    name: str
    encode: Callable[[Sequence[str], bool], list[TokenIds]]
    added: Sequence[Mapping[str, Any]]


def _load(path: Path) -> _Backend:
    try:
        return _load_fast(path)
    except Exception:  # whatever it dislikes, the reference implementation decides
        pass
    from tokenizers import Tokenizer as Reference

    try:
        reference = Reference.from_file(str(path))
    except Exception as error:
        raise TokenizerError(f"{path} is not a tokenizer file: {error}") from error
    return _of_reference(reference)


def _load_rebuilt(directory: Path, config: Mapping[str, Any], model_type: str | None) -> _Backend:
    try:
        return _of_reference(rebuilt(directory, config, model_type))
    except Exception as error:
        raise TokenizerError(f"transformers makes no tokenizer of {directory}: {error}") from error


def _of_reference(reference: Any) -> _Backend:
    """A tokenizer of the `tokenizers` library, without the truncation of its training run."""
    reference.no_truncation()
    reference.no_padding()

    def encode(texts: Sequence[str], special: bool) -> list[TokenIds]:
        encodings = reference.encode_batch_fast(list(texts), add_special_tokens=special)
        return [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]

    added = [
        {"id": number, "content": token.content} | {flag: getattr(token, flag) for flag in _FLAGS}
        for number, token in reference.get_added_tokens_decoder().items()
    ]
    return _Backend(name="tokenizers", encode=encode, added=added)


def _load_fast(path: Path) -> _Backend:
    from fastokens import Tokenizer as Fast

    fast = Fast.from_file(str(path))
    # A file may carry the truncation of its training run; servers switch it off, and so do we.
    fast.no_truncation()
    fast.no_padding()

    def encode(texts: Sequence[str], special: bool) -> list[TokenIds]:
        # A lone text goes another way, whose first use takes three times as long (0.3.5): so none is alone.
        ids, offsets = fast.encode_batch_flat([*texts, ""], add_special_tokens=special)
        flat = np.frombuffer(ids, dtype=np.uint32).view(np.int32)
        ends = np.frombuffer(offsets, dtype=np.uint64).tolist()
        return [flat[begin:end] for begin, end in pairwise(ends[:-1])]

    return _Backend(name="fastokens", encode=encode, added=fast.added_tokens())


def _normalizes(path: Path) -> bool:
    """Whether the file names a normalizer that does anything; read off its text, as parsing it takes long."""
    return _NO_NORMALIZER.search(path.read_bytes()) is None


def _load_tekken(path: Path) -> _Backend:
    """Mistral's own kind of file; its beginning mark is the one special token that may be added."""
    try:
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    except ImportError as error:
        raise TokenizerError(
            f"{path} needs mistral-common: pip install 'prompt-locality[mistral]'"
        ) from error
    try:
        tekken = Tekkenizer.from_file(path)
    except Exception as error:
        raise TokenizerError(f"{path} is not a tokenizer file: {error}") from error

    def encode(texts: Sequence[str], special: bool) -> list[TokenIds]:
        return [np.array(tekken.encode(text, bos=special, eos=False), dtype=np.int32) for text in texts]

    return _Backend(name="mistral-common", encode=encode, added=())


def _read_json(path: Path, *, required: bool) -> dict[str, Any]:
    if not path.is_file() and not required:
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TokenizerError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise TokenizerError(f"{path} does not hold a JSON object")
    return value
