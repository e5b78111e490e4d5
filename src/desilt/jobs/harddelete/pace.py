"""How much of a lake hard delete may remove within an hour: the interlock that stops its workers."""

from desilt.errors import TooFast
from desilt.repository.hard_delete import Discards


def check(found: Discards, max_share: float) -> None:
    """Refuse to remove anything where what is due, and what went within the hour, is more than ``max_share``.

    What is due counts as a whole: nothing of a mistake that large is removed before somebody has looked.
    """
    going = found.removed + found.leased + found.due
    if going > max_share * found.stored:
        raise TooFast(found.due, found.removed + found.leased, found.stored, max_share)
