"""An object as a file to read here and there: what Parquet asks for."""

import io

from desilt.objects.store import ObjectStore


class ReadFile(io.RawIOBase):
    """A place in so many bytes, from which whoever inherits reads."""

    def __init__(self, size: int) -> None:
        self._size, self._at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at


class ObjectFile(ReadFile):
    """Reads exactly the bytes that are asked for, each time from the store."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        super().__init__(store.head(key).size)
        self._store, self._key = store, key

    def read(self, size: int = -1) -> bytes:
        length = max(self._size - self._at, 0) if size is None or size < 0 else size
        chunk = self._store.get(self._key, start=self._at, length=length) if length else b""
        self._at += len(chunk)
        return chunk
