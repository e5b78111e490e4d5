"""What is put into a bucket, chunk by chunk."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor


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


def asked_elsewhere(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same, each asked for in another thread: where obstore asks for the next, none may come from obstore."""
    with ThreadPoolExecutor(1) as thread:
        while (chunk := thread.submit(next, chunks, None).result()) is not None:
            yield chunk
