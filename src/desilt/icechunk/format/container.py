"""What is around the contents of a file: who wrote it, what it is, how it is compressed.

Thirty-nine bytes, then a frame of zstd without a checksum. The library of format 1 does not say in it how long the
contents are, so they are decompressed as a stream.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

import cramjam

from desilt.errors import DamagedAsset, MissingAsset, NotFound, UnknownAsset
from desilt.objects.store import ObjectStore
from desilt.sstable.varint import Malformed

MAGIC = "ICE🧊CHUNK".encode()
WRITER = 24  # bytes, the rest of them spaces
HEADER = len(MAGIC) + WRITER + 3
FORMATS = (1, 2)
PLAIN, ZSTD = 0, 1
OURS = b"desilt"  # the writer of what we make


class AssetKind(IntEnum):
    """As the header numbers them; 3 and 5 are reserved."""

    SNAPSHOT = 1
    MANIFEST = 2
    TRANSACTION = 4
    REPO = 6


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, opened."""

    name: str  # its key, for messages
    format: int  # 1 or 2
    writer: str
    content: bytes


def fetched(store: ObjectStore, key: str, kind: AssetKind) -> Asset:
    """The file at ``key``; :class:`MissingAsset` where there is none."""
    return opened(got(store, key), kind, key)


def got(store: ObjectStore, key: str) -> bytes:
    """The bytes at ``key``, which something refers to."""
    try:
        return store.get(key)
    except NotFound:
        raise MissingAsset(key) from None


def opened(data: bytes, kind: AssetKind, name: str) -> Asset:
    """What is in ``data``, if it is of ``kind`` and of a version that is known."""
    if len(data) <= HEADER or not data.startswith(MAGIC):
        raise DamagedAsset(name, "it does not begin as Icechunk's files do")
    version, found, compression = data[HEADER - 3 : HEADER]
    if version not in FORMATS:
        raise UnknownAsset(name, f"it has format {version}, and 1 and 2 are known")
    if found != kind:
        raise UnknownAsset(name, f"it should be a {kind.name.lower()}, and is of kind {found}")
    if compression not in (PLAIN, ZSTD):
        raise UnknownAsset(name, f"it is compressed in way {compression}, and 0 and 1 are known")
    writer = data[len(MAGIC) : len(MAGIC) + WRITER].decode(errors="replace").rstrip()
    return Asset(name, version, writer, data[HEADER:] if compression == PLAIN else _decompressed(data[HEADER:], name))


def closed(kind: AssetKind, version: int, content: bytes) -> bytes:
    """A file of our own."""
    return MAGIC + OURS.ljust(WRITER) + bytes([version, kind, ZSTD]) + _compressed(content)


def reclosed(data: bytes, content: bytes) -> bytes:
    """The file ``data`` with other contents, as whoever wrote it would have."""
    return data[:HEADER] + (content if data[HEADER - 1] == PLAIN else _compressed(content))


def _compressed(content: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(content))


def _decompressed(data: bytes, name: str) -> bytes:
    try:
        return bytes(cramjam.zstd.decompress(data))
    except cramjam.DecompressionError as fault:
        raise DamagedAsset(name, f"it cannot be decompressed ({fault})") from None


@contextmanager
def blaming(name: str) -> Iterator[None]:
    """Whatever is malformed inside is the fault of the file called ``name``."""
    try:
        yield
    except Malformed as fault:
        raise DamagedAsset(name, str(fault)) from None


def refuse_beyond(asset: Asset, strange: bool, what: str) -> None:
    """:class:`UnknownAsset` where a later version says more of something than is read here."""
    if strange:
        raise UnknownAsset(asset.name, f"it says of {what} what is not known here, though its format is {asset.format}")
