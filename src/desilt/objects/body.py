"""What is put into a bucket, chunk by chunk."""

from collections.abc import Iterable, Iterator


class Watched:
    """A body that counts what it gave, and remembers the error it ended with."""

    def __init__(self, body: Iterable[bytes]) -> None:
        self.size = 0
        self.error: BaseException | None = None
        self._body = iter(body)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            chunk = next(self._body)
        except StopIteration:
            raise
        except BaseException as error:
            self.error = error
            raise
        self.size += len(chunk)
        return chunk


def drained(chunks: list[bytes]) -> Iterator[bytes]:
    """``chunks``, each let go once it is handed on."""
    while chunks:
        yield chunks.pop(0)
