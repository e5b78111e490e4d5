"""How a task gets at the repository: as it is, or, where it was sent to another process, opened anew."""

from collections.abc import Callable
from typing import Any

from desilt.repository.protocol import Repository


class Access:
    """The repository for whoever is in the same process; sent elsewhere, it becomes its handle."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def __call__(self) -> Repository:
        return self._repository

    def __reduce__(self) -> tuple[Any, ...]:
        return _sent, (self._repository.handle,)


def _sent(handle: Callable[[], Repository]) -> Callable[[], Repository]:
    return handle
