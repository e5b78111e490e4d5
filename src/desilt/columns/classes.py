"""Which small files are to become one, so that after years there are about as many as after weeks.

They are told apart by how many rows they have, each class holding up to eight times as
many as the one below. When a class has eight, they become one: so a row is written some
four times in its life, and there are some seven of each class.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

FEW = 8  # of a class: as many are merged
SMALLEST = 1 << 12  # rows: up to so many are the lowest class
LARGE = 500_000  # rows: so many are left alone
MOST = 1_000_000  # rows of what comes out

Item = TypeVar("Item")


def due(items: Iterable[Item], *, rows: Callable[[Item], int], name: Callable[[Item], str]) -> list[list[Item]]:
    """Groups of ``items`` that are to become one each, of their kind neighbours by ``name``."""
    small = sorted((one for one in items if rows(one) < LARGE), key=lambda one: (_class(rows(one)), name(one)))
    found: list[list[Item]] = []
    for _, several in groupby(small, key=lambda one: _class(rows(one))):
        alike = list(several)
        if len(alike) >= FEW:
            found += [group for group in _grouped(alike, rows) if len(group) > 1]
    return found


def _class(rows: int) -> int:
    return max(0, (rows // SMALLEST).bit_length() + 2) // 3


def _grouped(items: Sequence[Item], rows: Callable[[Item], int]) -> Iterator[list[Item]]:
    group: list[Item] = []
    for one in items:
        if group and sum(map(rows, group)) + rows(one) > MOST:
            yield group
            group = []
        group.append(one)
    yield group
