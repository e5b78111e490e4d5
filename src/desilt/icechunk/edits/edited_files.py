"""Edits of format 1: snapshot files get other parents, one after the other, then refs go.

Nothing there makes two files change at once. Each edit is right by itself, so whatever comes in between finds a history
that is whole; cut off and done again, the rest is done. In a bucket a file is replaced only if it is what was read.
"""

from collections.abc import Callable

from desilt.errors import Conflict, NotFound, RefsMoved
from desilt.icechunk import seen
from desilt.icechunk.edits.editing import TRIES, Decided, EditTurn
from desilt.icechunk.edits.removed_refs import bury_tag, remove_branch
from desilt.icechunk.edits.snapshot_writing import with_parent
from desilt.icechunk.format import refs
from desilt.icechunk.format.container import got
from desilt.icechunk.format.refs import RefFiles
from desilt.icechunk.layout import REPO, SNAPSHOTS
from desilt.objects import conditional
from desilt.repository.editor import GoingRef
from desilt.repository.snapshot import Snapshot

Pointers = dict[tuple[str, str], str]


def edited(turn: EditTurn, decide: Callable[[Snapshot], Decided]) -> Decided:
    """Makes what ``decide`` says of what is there, decided anew as often as it moves."""
    turn.begin()
    for tried in range(TRIES):
        whole = seen.look(turn.core, turn.relies_on.at).seen
        made = decide(whole)
        if _made(turn, made):
            return made
        turn.pause(tried)
    raise RefsMoved("history was edited")


def _made(turn: EditTurn, made: Decided) -> bool:
    """False: somebody moved refs, or ordered something to be kept; what was done by then stays done."""
    pointers = _pointers(made.seen)
    if made.parents or made.going:
        turn.announce()
    for name, (old, new) in made.parents.items():
        if _as_seen(turn, made, pointers) is None or not _edit(turn, name, old, new):
            return False
    for one in made.going:
        there = _as_seen(turn, made, pointers)
        if there is None:
            return False
        _delete(turn, one, there.keys[one.kind, one.name])
        del pointers[one.kind, one.name]
    return True


def _edit(turn: EditTurn, snapshot: str, old: str, new: str) -> bool:
    store, key = turn.core.store, f"{SNAPSHOTS}{snapshot}"
    got(store, key)
    file = conditional.read(store, key)
    try:
        body = with_parent(file.body, snapshot, old, new)
    except Conflict:  # somebody gave it another
        return False
    return conditional.put_over(store, file, body)


def _delete(turn: EditTurn, one: GoingRef, key: str) -> None:
    if one.kind == "tag":
        bury_tag(turn.core.store, key)
    else:
        remove_branch(turn.core.store, key)


def _as_seen(turn: EditTurn, made: Decided, pointers: Pointers) -> RefFiles | None:
    """The refs, if they are where they were decided on, and nobody has ordered anything since."""
    if not turn.still_counts(made.seen):
        return None
    refuse_upgraded(turn)
    there = refs.read(turn.core.store)
    now = {("branch", name): head for name, head in there.branches.items()}
    now |= {("tag", name): target for name, target in there.tags.items()}
    return there if now == pointers else None


def _pointers(whole: Snapshot) -> Pointers:
    found = {("branch", one.name): one.head for one in whole.branches}
    return found | {("tag", one.name): one.target for one in whole.tags}


def refuse_upgraded(turn: EditTurn) -> None:
    """What was upgraded since has its history elsewhere."""
    try:
        turn.core.store.head(REPO)
    except NotFound:
        return
    raise Conflict("this Icechunk repository was upgraded to format 2 since it was opened; plan again")
