from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from store import encodings

BODY = b'{"messages": "' + b"hello world, " * 500 + b'"}'


def deflate_raw(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-15)


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


ENCODERS = [
    ("gzip", gzip.compress),
    ("X-GZip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", deflate_raw),
    ("br", brotli.compress),
    ("zstd", zstd),
    ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
    ("identity", bytes),
    ("", bytes),
    (None, bytes),
]


@pytest.mark.parametrize(("name", "encode"), ENCODERS)
def test_a_coding_is_undone(name: str | None, encode: object) -> None:
    assert callable(encode)
    assert encodings.decode(encode(BODY), name) == (BODY, None)
    assert encodings.decode(b"", name) == (b"", None)


@pytest.mark.parametrize(("name", "encode"), [("gzip", gzip.compress), ("zstd", zstd)])
def test_several_members_are_one_body(name: str, encode: object) -> None:
    assert callable(encode)
    assert encodings.decode(encode(BODY) + encode(b"more"), name) == (BODY + b"more", None)


@pytest.mark.parametrize(("name", "encode"), ENCODERS[:7])
def test_a_truncated_body_keeps_its_decoded_start_and_says_so(name: str, encode: object) -> None:
    assert callable(encode)
    wire = encode(BODY)
    content, problem = encodings.decode(wire[:-3], name)
    assert BODY.startswith(content)
    assert problem is not None
    assert "ends early" in problem


@pytest.mark.parametrize(("name", "encode"), ENCODERS[:7])
def test_a_bomb_is_cut_at_the_cap(name: str, encode: object) -> None:
    assert callable(encode)
    content, problem = encodings.decode(encode(bytes(10_000_000)), name, max_bytes=1_000_000)
    assert content == bytes(1_000_000)
    assert problem is not None
    assert "more than 1000000 bytes" in problem


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd", "unheard-of"])
def test_plain_text_under_a_wrong_header_is_kept(name: str) -> None:
    content, problem = encodings.decode(BODY, name)
    assert content == BODY
    assert problem is not None
    assert "plain text" in problem


def test_bytes_nobody_can_decode_are_not_kept() -> None:
    assert encodings.decode(b"\x00\x01\xff" * 9, "gzip")[0] == b""
    content, problem = encodings.decode(b"c2stYW50LWFwaTAz", "base64")
    assert content == b""
    assert problem == "unknown Content-Encoding 'base64': not stored"


def test_compressed_bytes_without_a_header_are_decoded() -> None:
    content, problem = encodings.decode(gzip.compress(BODY), None)
    assert content == BODY
    assert problem == "no Content-Encoding header, but the bytes are gzip"


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br", "x", None]))
def test_no_bytes_make_it_raise(wire: bytes, name: str | None) -> None:
    content, problem = encodings.decode(wire, name, max_bytes=10_000)
    assert isinstance(content, bytes)
    assert problem is None or problem != ""
