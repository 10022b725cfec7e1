"""Byte strings in the `blob` table: each distinct one once, stored against a predecessor.

It redacts nothing: what comes here has passed the door in `db`.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from store import deltas, tables

MAX_DEPTH = 100
RECENT = 16
RECENT_BYTES = 64 << 20
CACHE_BYTES = 64 << 20

_READ = select(tables.blob.c.base_id, tables.blob.c.length, tables.blob.c.data).where(
    tables.blob.c.id == bindparam("blob_id")
)
_FIND = select(tables.blob.c.id, tables.blob.c.depth).where(tables.blob.c.sha256 == bindparam("digest"))
_DEPTH = select(tables.blob.c.depth).where(tables.blob.c.id == bindparam("blob_id"))


@dataclass(frozen=True, slots=True)
class _Recent:
    blob_id: int
    depth: int
    content: bytes


class BlobReader:
    """Reads blobs by id; the last ones stay decoded, up to 64 MB, as predecessors of the next."""

    def __init__(self) -> None:
        self._decoded: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, connection: Connection, blob_id: int) -> bytes:
        """Return the bytes of a blob; raise ValueError where it or a predecessor is missing or damaged."""
        chain: list[tuple[int, int, bytes]] = []
        wanted: int | None = blob_id
        while wanted is not None and wanted not in self._decoded:
            row = connection.execute(_READ, {"blob_id": wanted}).one_or_none()
            if row is None or len(chain) > MAX_DEPTH:
                raise ValueError(f"blob {blob_id} cannot be read: its predecessor {wanted} is not there")
            chain.append((wanted, row.length, row.data))
            wanted = row.base_id
        content = None if wanted is None else self._decoded[wanted]
        if wanted is not None:
            self._decoded.move_to_end(wanted)
        for current, length, data in reversed(chain):
            content = deltas.decompress(data, content, length=length)
            self._keep(current, content)
        assert content is not None
        return content

    def _keep(self, blob_id: int, content: bytes) -> None:
        self._decoded[blob_id] = content
        self._bytes += len(content)
        while self._bytes > CACHE_BYTES and len(self._decoded) > 1:
            self._bytes -= len(self._decoded.popitem(last=False)[1])


class BlobWriter:
    """Writes blobs, keeping the last 16 of each stream (at most 64 MB in all) as predecessors.

    A stream is what resembles itself: a kind of body and the path it belongs to.
    """

    def __init__(self) -> None:
        self._streams: OrderedDict[str, OrderedDict[int, _Recent]] = OrderedDict()
        self._bytes = 0

    def knows(self, stream: str) -> bool:
        """Say whether this stream has predecessors in memory, or was found to have none."""
        return stream in self._streams

    def forget(self) -> None:
        """Drop all predecessors, after a transaction that did not reach the disk."""
        self._streams.clear()
        self._bytes = 0

    def load(self, connection: Connection, reader: BlobReader, stream: str, blob_ids: Sequence[int]) -> None:
        """Take blobs written by an earlier run, oldest first, as predecessors for `stream`."""
        self._streams.setdefault(stream, OrderedDict())
        for blob_id in blob_ids:
            depth = connection.execute(_DEPTH, {"blob_id": blob_id}).scalar_one()
            self._remember(stream, _Recent(blob_id, depth, reader.get(connection, blob_id)))

    def put(self, connection: Connection, stream: str, content: bytes) -> int:
        """Store `content` and return its blob id; equal bytes have one id."""
        digest = hashlib.sha256(content).digest()
        found = connection.execute(_FIND, {"digest": digest}).one_or_none()
        if found is not None:
            self._remember(stream, _Recent(found.id, found.depth, content))
            return int(found.id)
        base = self._predecessor(stream, content)
        depth = base.depth + 1 if base else 0
        result = connection.execute(
            tables.blob.insert().values(
                sha256=digest,
                base_id=base.blob_id if base else None,
                depth=depth,
                length=len(content),
                data=deltas.compress(content, base.content if base else None),
            )
        )
        assert result.inserted_primary_key is not None
        blob_id = int(result.inserted_primary_key[0])
        self._remember(stream, _Recent(blob_id, depth, content))
        return blob_id

    def _predecessor(self, stream: str, content: bytes) -> _Recent | None:
        recents = list(self._streams.get(stream, {}).values())
        index = deltas.choose(content, [recent.content for recent in recents])
        if index is None or recents[index].depth >= MAX_DEPTH or not recents[index].content:
            return None
        return recents[index]

    def _remember(self, stream: str, recent: _Recent) -> None:
        kept = self._streams.setdefault(stream, OrderedDict())
        if recent.blob_id in kept:
            kept.move_to_end(recent.blob_id)
            return
        kept[recent.blob_id] = recent
        self._bytes += len(recent.content)
        if len(kept) > RECENT:
            self._bytes -= len(kept.popitem(last=False)[1].content)
        while self._bytes > RECENT_BYTES and len(kept) > 1:
            self._bytes -= len(kept.popitem(last=False)[1].content)
        self._streams.move_to_end(stream)
        self._drop_oldest_streams()

    def _drop_oldest_streams(self) -> None:
        while self._bytes > RECENT_BYTES and len(self._streams) > 1:
            _, oldest = self._streams.popitem(last=False)
            self._bytes -= sum(len(recent.content) for recent in oldest.values())


def damaged(connection: Connection) -> Iterator[tuple[int, str]]:
    """Read every blob back and hash it; yield the id and the reason of each that disagrees."""
    reader = BlobReader()
    for blob_id, digest in connection.execute(
        select(tables.blob.c.id, tables.blob.c.sha256).order_by(tables.blob.c.id)
    ).all():
        try:
            content = reader.get(connection, blob_id)
        except ValueError as error:
            yield blob_id, str(error)
            continue
        if hashlib.sha256(content).digest() != digest:
            yield blob_id, "its bytes do not have the hash they were stored under"
