"""Which table is cut by what."""

from collections.abc import Callable, Mapping, Sequence

from desilt.repository.protocol import Repository
from desilt.tables.entries import entries, staged
from desilt.tables.history import history
from desilt.tables.inventory import inventory
from desilt.tables.piece import Piece
from desilt.tables.removals import removals
from desilt.tables.request import Asked
from desilt.tables.runs import outcome, plan

CUT: Mapping[str, Callable[[Repository, Asked], Sequence[Piece]]] = {
    "entries": entries,
    "commits": history,
    "refs": history,
    "staged": staged,
    "inventory": inventory,
    "plan": plan,
    "outcome": outcome,
    "removals": removals,
}


def pieces(repository: Repository, asked: Asked) -> Sequence[Piece]:
    """The parts of a table, of which none has a row of another."""
    return CUT[asked.table](repository, asked)
