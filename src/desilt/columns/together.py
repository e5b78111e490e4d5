"""Counters added up, of which the sum so far may have thousands of keys: it is copied, and never gone through again."""

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar("Key")


def together(sum_so_far: Counter[Key], more: Counter[Key]) -> Counter[Key]:
    """Both; as with ``+``, what comes to nothing is left out."""
    found = sum_so_far.copy() if sum_so_far else more.copy()
    if sum_so_far:
        add(found, more.items())
    return +found if 0 in found.values() else found


def add(counts: Counter[Key], more: Iterable[tuple[Key, int]]) -> None:
    """Each of ``more`` to its own."""
    known = counts.get
    for key, count in more:
        counts[key] = count + known(key, 0)
