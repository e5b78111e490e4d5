"""A file that a signed plan names with its hash: read as it was written, or not at all."""

import hashlib
from dataclasses import dataclass

from desilt.errors import NotFound
from desilt.objects.store import ObjectStore


@dataclass(frozen=True, slots=True)
class Sealed:
    """A key, and the SHA-256 of what was put there."""

    key: str
    sha256: str

    def read(self, store: ObjectStore) -> bytes | None:
        """What was put there; None if it is gone, or something else."""
        try:
            data = store.get(self.key)
        except NotFound:
            return None
        return data if hashlib.sha256(data).hexdigest() == self.sha256 else None


def seal(store: ObjectStore, key: str, data: bytes) -> Sealed:
    """Put ``data`` there."""
    store.put(key, [data])
    return Sealed(key, hashlib.sha256(data).hexdigest())
