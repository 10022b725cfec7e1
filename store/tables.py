"""The tables of a capture, as SQLAlchemy Core describes them today.

It creates nothing: `migrations` brings a database to this shape.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

capture = Table(
    "capture",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", Text, nullable=False),
)
"""What holds for the whole capture: its redaction policy and the salt of its fingerprints (hex)."""

blob = Table(
    "blob",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("sha256", LargeBinary(32), nullable=False, unique=True),
    Column("base_id", Integer, ForeignKey("blob.id")),
    Column("depth", Integer, nullable=False),
    Column("length", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""Distinct byte strings: a zstd frame each, with blob `base_id` as its dictionary (None: a keyframe)."""

secret = Table(
    "secret",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(40), nullable=False),
    Column("fingerprint", LargeBinary(32), nullable=False, unique=True),
)
"""Placeholders given out: a slow salted hash instead of the secret, so that equal stays equal."""


def _body_columns(side: str) -> list[Column[Any]]:
    return [
        Column(f"{side}_headers", Integer, ForeignKey("blob.id")),
        Column(f"{side}_content", Integer, ForeignKey("blob.id")),
        Column(f"{side}_wire_length", BigInteger),
        Column(f"{side}_wire_sha256", LargeBinary(32)),
        Column(f"{side}_problem", Text),
        Column(f"{side}_secrets", Text),
    ]


exchange = Table(
    "exchange",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("started_at_ns", BigInteger, nullable=False),
    Column("method", String(40), nullable=False),
    Column("path", Text, nullable=False),
    Column("query", Text, nullable=False),
    *_body_columns("request"),
    Column("status", Integer),
    *_body_columns("response"),
    Column("chunks", LargeBinary),
    Column("ttft_ns", BigInteger),
    Column("duration_ns", BigInteger),
    Column("ended", String(20), nullable=False),
    Column("error", Text),
    Index("exchange_in_order", "started_at_ns", "id"),
)

fact = Table(
    "fact",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at_ns", BigInteger, nullable=False),
    Column("path", Text, nullable=False),
    Column("status", Integer),
    Column("body", Integer, ForeignKey("blob.id"), nullable=False),
)

sealed = Table(
    "sealed",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("exchange_id", Integer, ForeignKey("exchange.id")),
    Column("kind", String(20), nullable=False),
    Column("number", Integer, nullable=False),
    Column("content", Integer, ForeignKey("blob.id"), nullable=False),
    Index("sealed_of_exchange", "exchange_id", "kind", "number"),
)
"""What a sealed capture keeps instead of bodies; of the whole capture where `exchange_id` is None."""

run = Table(
    "run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", String(40), nullable=False, unique=True),
    Column("started_at_ns", BigInteger, nullable=False),
    Column("ended_at_ns", BigInteger),
    Column("requests", Integer, nullable=False),
    Column("lost", Integer),
)
"""Runs of the proxy: `requests` are written; `lost` is None until known, `ended_at_ns` of the killed too."""
