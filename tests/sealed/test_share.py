"""`locality share` gives a copy that holds no text and has the same numbers, or gives none."""

from __future__ import annotations

import base64
import bz2
import json
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard

from analyzer import sealed_rows, share_proof, structure
from analyzer.keyed_chain import KeyedChain, common_tokens
from analyzer.open_capture import open_capture
from analyzer.pipeline import Options, analyze
from analyzer.seal_key import seal_key
from analyzer.sealed_equality import differences
from analyzer.share_search import TextSearch
from analyzer.structure import Sealer
from store.db import Capture
from store.records import RequestSeen
from store.sealed import SealedDoor
from tests.captures import write_capture
from tests.conftest import locality
from tests.sealed.made import report_of
from tests.sealed.test_equality import broken, growing


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sent = [*list(growing(1))[:12], *list(broken())[:8]]
    return write_capture(tmp_path_factory.mktemp("original") / "c.sqlite", sent)


def shared(original: Path, tokenizer: Path, output: Path) -> tuple[int, str, str]:
    made = locality("share", str(original), "-o", str(output), "--tokenizer", str(tokenizer))
    return made.returncode, made.stdout, made.stderr


@pytest.mark.parametrize("suffix", [".sqlite", ".json"])
def test_a_copy_is_proved_and_says_what_leaves(
    suffix: str, original: Path, sample_tokenizer: Path, tmp_path: Path
) -> None:
    output = tmp_path / f"shared{suffix}"
    status, said, complaints = shared(original, sample_tokenizer, output)
    assert (status, complaints) == (0, "")
    assert "0 values differ" in said and "original searched for, 0 found" in said
    assert "with one in every field, 0 found" in said and ", 0 guessed" in said
    assert "what leaves this machine" in said and "keyed fingerprints" in said
    assert output.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [output]
    if suffix == ".sqlite":
        copied = report_of(output, Options())
    else:
        with open_capture(str(output)) as sealed:
            copied = analyze(sealed, Options()).report
    assert differences(report_of(original, Options(tokenizer=str(sample_tokenizer))), copied) == []


def test_a_number_that_differs_removes_the_copy(
    original: Path, sample_tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sealed_rows.RowSealer.row

    def shortened(self: sealed_rows.RowSealer, placed: object) -> dict[str, object]:
        row = whole(self, placed)  # type: ignore[arg-type]
        if row["tokens"]:
            row["tokens"] = [*row["tokens"][:-1], (row["tokens"][-1][0], row["tokens"][-1][1] - 1)]
        return row

    monkeypatch.setattr(sealed_rows.RowSealer, "row", shortened)
    removed(original, sample_tokenizer, tmp_path / "s.sqlite", "a number is not the original's: ")


@pytest.mark.parametrize(
    "hide",
    [
        lambda text: text.decode(),
        lambda text: base64.b64encode(text).decode(),
        lambda text: text.hex(),
        lambda text: base64.urlsafe_b64encode(zlib.compress(text)).decode(),
        lambda text: zstandard.ZstdCompressor().compress(text).hex(),
        lambda text: text.decode().encode("utf-16-le").hex(),
        lambda text: "".join(f"%{byte:02x}" for byte in text),
        lambda text: "".join(f"&#{byte};" for byte in text),
        lambda text: "".join(f"&#x{byte:x};" for byte in text),
        lambda text: "".join(f"\\u{byte:04x}" for byte in text),
        lambda text: bz2.compress(text).hex(),
        lambda text: base64.b64encode(lzma.compress(text)).decode(),
    ],
    ids=[
        "raw",
        "base64",
        "hex",
        "zlib",
        "zstd",
        "utf-16",
        "percent",
        "entities",
        "hex-entities",
        "u-escapes",
        "bz2",
        "xz",
    ],
)
def test_text_in_any_disguise_removes_the_copy(
    hide: Callable[[bytes], str],
    original: Path,
    sample_tokenizer: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = Sealer._string

    def leaking(self: Sealer, text: str) -> dict[str, object]:
        long = text.encode("utf-8", "replace") if len(text) > 40 else b""
        return whole(self, text) | {"text": hide(long)}

    monkeypatch.setattr(Sealer, "_string", leaking)
    removed(original, sample_tokenizer, tmp_path / "s.sqlite", "strings of the original stand in the copy")


def test_a_head_that_is_kept_lets_the_canary_through(
    original: Path, sample_tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        share_proof, "seal_capture", lambda source, target, *_: target.save_facts(_leak(source))
    )
    removed(original, sample_tokenizer, tmp_path / "s.sqlite", "a planted canary came through")


def _leak(source: Capture) -> list[object]:
    from store.records import ServerFact

    body = next(source.exchanges()).request.content
    return [ServerFact(at_ns=1, path="/version", status=200, body=body)]


def test_fingerprints_without_a_key_are_guessed_and_remove_the_copy(
    original: Path, sample_tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sealer, "fingerprint", lambda self, text: unkeyed(text))
    removed(original, sample_tokenizer, tmp_path / "s.json", "were guessed from the fingerprints")


def unkeyed(text: str) -> str:
    import hashlib

    data = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[: 2 * structure.FINGERPRINT_BYTES]


def removed(original: Path, tokenizer: Path, output: Path, why: str) -> None:
    status, said, complaints = shared(original, tokenizer, output)
    assert status == 3, complaints
    assert why in complaints
    assert "what leaves this machine" not in said
    assert not list(output.parent.glob(f"{output.name}*"))


def test_an_unknown_kind_or_a_file_that_is_there_is_refused(
    original: Path, sample_tokenizer: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there.json"
    there.write_text("mine", encoding="utf-8")
    for output, why in ((tmp_path / "s.txt", "ends in .sqlite, .json, .html"), (there, "is there already")):
        status, _, complaints = shared(original, sample_tokenizer, output)
        assert status == 2 and why in complaints
    assert there.read_text(encoding="utf-8") == "mine"


def test_the_search_finds_twelve_characters_and_not_eleven() -> None:
    search = TextSearch([b"... the quay, north ..."], [])
    assert list(search.found([b"by the Quay, nort you see"])) == [b" the quay, n"]
    assert not list(search.found([b"the quay, n"]))
    assert not list(
        TextSearch([b"x" * 40, b"[1,2],[3,4],[5,6]"], []).found([b"x" * 40, b"[1,2],[3,4],[5,6]"])
    )


def test_the_store_lets_no_text_of_a_sealed_capture_in(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    seen = RequestSeen(
        key="k",
        started_at_ns=1,
        method="POST",
        path="/canary",
        query="canary=1",
        headers=(("canary", "canary"),),
        body=b"canary",
    )
    with Capture.create_or_open(str(path), redaction="sealed") as capture:
        assert isinstance(capture._door, SealedDoor)
        capture.save_request(seen)
        (exchange,) = capture.exchanges()
    assert exchange.request.wire_length == 6
    assert b"canary" not in path.read_bytes()


def test_chains_of_one_key_tell_how_far_two_prompts_agree() -> None:
    a = np.arange(100, dtype=np.int32)
    b = a.copy()
    b[70] = 7
    one, other = KeyedChain(bytes(32)), KeyedChain(bytes(32))
    assert common_tokens(one.links(a), other.links(b)) == 64
    assert common_tokens(one.links(a), other.links(a)) == 96
    assert common_tokens(one.links(a), KeyedChain(bytes([1] * 32)).links(a)) == 0
    assert one.links(b) == KeyedChain(bytes(32)).links(b)  # what was known is what is computed


def test_a_key_file_is_made_once_and_private(tmp_path: Path) -> None:
    file = tmp_path / "key"
    key = seal_key(file)
    assert seal_key(file) == key and len(key) == 32
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(OSError, match="holds no key"):
        seal_key(file)


def test_a_structure_keeps_the_endpoints_words_and_no_others() -> None:
    body = {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi there"}],
        "tools": [{"type": "function", "function": {"parameters": {"properties": {"path": {"type": "x"}}}}}],
        "prompt": [1, 2, 3],
    }
    sealed = Sealer(bytes(32), len).seal(body)
    message = sealed["messages"][0]
    assert message["role"] == "user" and sealed["max_tokens"] == 5
    assert message["content"] == {"length": 8, "tokens": 8, "fingerprint": message["content"]["fingerprint"]}
    assert "path" not in json.dumps(sealed) and sealed["prompt"]["numbers"] == 3
