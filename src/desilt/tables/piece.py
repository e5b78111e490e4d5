"""A part of a table: small enough to be sent to a task, which reads it from the repository."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from desilt.columns.layout import Layout
from desilt.jobs.report import branch_name
from desilt.repository.protocol import Repository

AT_LEAST = 32  # pieces, where there is as much to cut; a session may have that many cores
T = TypeVar("T")


class Piece(Protocol):
    """Rows of a table, all of them or an error."""

    def read(self, repository: Repository) -> Iterator[pa.Table]:
        """On an executor: the rows, in tables of the table's schema."""


def grouped(things: Sequence[T], weigh: Callable[[T], int], most: int) -> list[list[T]]:
    """Neighbours together: as few groups as there are of weight ``most``, but so many that all cores have one."""
    limit = min(most, -(-sum(map(weigh, things)) // AT_LEAST))
    groups: list[list[T]] = []
    weight = 0
    for thing in things:
        heavy = weigh(thing)
        if not groups or weight + heavy > limit:
            groups.append([])
            weight = 0
        groups[-1].append(thing)
        weight += heavy
    return groups


def branches_of(addresses: pa.Array, layout: Layout, names: Mapping[str, str]) -> pa.Array:
    """What people call the branches that objects were uploaded to; "" of what is no object."""
    groups = layout.groups(addresses).dictionary_encode()
    known = pa.array([branch_name(names, uid) for uid in groups.dictionary.to_pylist()], pa.string())
    return known.take(groups.indices)


def repeated(value: object, times: int, kind: pa.DataType | None = None) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind or pa.string()), times)
