"""Many small pieces of work, done in this process, in others beside it, or by Spark's executors.

A piece writes what it makes into the object store, under a name that only it
uses: done twice, it is done once. What comes back to the driver is small. What a
piece makes does not depend on where it is made, nor on how many are at work.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Weigh = Callable[[Any], int]


class Watch(Protocol):
    """Somebody who wants to know how far it is."""

    def begins(self, stage: str) -> None: ...

    def expects(self, objects: int) -> None:
        """So many objects are to be dealt with in this stage, where that is known."""

    def advance(self, objects: int) -> None:
        """So many more objects are dealt with in this stage."""

    def ends(self) -> None:
        """There is nothing more to wait for."""


class Nobody:
    """Looks the other way."""

    def begins(self, stage: str) -> None: ...

    def expects(self, objects: int) -> None: ...

    def advance(self, objects: int) -> None: ...

    def ends(self) -> None: ...


class Executor(Protocol):
    """Where work is done."""

    watch: Watch

    @property
    def width(self) -> int:
        """How many pieces are worked on at once."""

    @property
    def place(self) -> str:
        """Where work was done so far, for people."""

    def __call__(
        self, work: Callable[[Item], Result], items: Sequence[Item], *, rows: int = 0, weigh: Weigh | None = None
    ) -> list[Result]:
        """The result of ``work`` for each of ``items``, in their order; any failure is raised.

        ``rows`` is about how many objects or entries all of them are about. ``weigh`` says of a result how many
        objects it stands for, for those who watch.
        """


class Here:
    """One piece after the other, in this process."""

    width = 1
    place = "in one process"

    def __init__(self, watch: Watch | None = None) -> None:
        self.watch: Watch = watch or Nobody()

    def __call__(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        rows: int = 0,  # noqa: ARG002  others choose by it
        weigh: Weigh | None = None,
    ) -> list[Result]:
        results = []
        for item in items:
            results.append(work(item))
            self.watch.advance(weigh(results[-1]) if weigh else 0)
        return results


HERE = Here()
