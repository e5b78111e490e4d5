"""The hashes lakeFS names commits and entries by: equal facts, equal names, whoever works them out."""

import hashlib
from collections.abc import Mapping, Sequence


def hash_int(value: int) -> bytes:
    """An int64 in the form it is hashed in."""
    return b"\x02\x08" + value.to_bytes(8, "big", signed=True)


def hash_text(text: str) -> bytes:
    raw = text.encode()
    return b"\x01" + hash_int(len(raw)) + raw


def hash_texts(texts: Sequence[str]) -> bytes:
    return b"\x03" + hash_int(len(texts)) + b"".join(map(hash_text, texts))


def hash_map(texts: Mapping[str, str]) -> bytes:
    ordered = sorted(texts.items(), key=lambda item: item[0].encode())
    return b"\x04" + hash_int(len(texts)) + b"".join(hash_text(key) + hash_text(value) for key, value in ordered)


def hash_within(form: bytes) -> bytes:
    """A hash as a part of what is hashed."""
    digest = hashlib.sha256(form).digest()
    return b"\x05\x00" + hash_int(len(digest)) + digest


def entry_hash(size: int, checksum: str, metadata: Mapping[str, str], content_type: str) -> bytes:
    """An entry's identity: equal for equal objects, wherever they are kept and whenever they came."""
    form = hash_int(size) + hash_text(checksum) + hash_map(metadata)
    return hashlib.sha256(form + (hash_text(content_type) if content_type else b"")).digest()


def commit_hash(
    *, parents: Sequence[str], metarange: str, seconds: int, committer: str, message: str, metadata: Mapping[str, str]
) -> str:
    """A commit's id; of its time only the whole ``seconds`` since 1970 are in it."""
    texts = b"".join(map(hash_text, ("commit:v1", committer, message, metarange)))
    form = texts + hash_int(seconds) + hash_map(metadata) + hash_within(hash_texts(parents))
    return hashlib.sha256(form).hexdigest()
