"""Finds the tokenizer of the served model: where the user says, or where the server says it loaded it.

It never downloads, and never guesses with another model's.
"""

from __future__ import annotations

from pathlib import Path

from analyzer.servers import ServerProfile
from analyzer.settings import UNTOLD, ServerSettings
from analyzer.tokens import TokenizerError

HOW_TO_GIVE = "give --tokenizer DIR, the folder of the served model that holds its tokenizer.json"


def find_tokenizer(given: str | None, profile: ServerProfile, settings: ServerSettings = UNTOLD) -> Path:
    """The folder of the tokenizer files: by the user, else by the start line, else by the server itself.

    Raises TokenizerError saying what is missing and what to give.
    """
    if given is not None:
        found = _local(given)
        if found is None:
            raise TokenizerError(
                f"--tokenizer {given}: no such folder, nor such a model in the local hub cache; {HOW_TO_GIVE}"
            )
        return found
    loaded = settings.tokenizer or profile.root or settings.model
    if loaded is None:
        raise TokenizerError(f"no tokenizer: the server did not say which model it loaded; {HOW_TO_GIVE}")
    found = _local(loaded)
    if found is None:
        raise TokenizerError(
            f"no tokenizer: the server loaded {loaded}, which is not on this machine; {HOW_TO_GIVE}"
        )
    return found


def _local(name: str) -> Path | None:
    directory = Path(name).expanduser()
    if directory.is_dir():
        return directory
    return _in_hub_cache(name)


def _in_hub_cache(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        file = try_to_load_from_cache(name, "tokenizer.json")
    except HFValidationError:  # not the shape of a model's name
        return None
    return Path(file).parent if isinstance(file, str) else None
