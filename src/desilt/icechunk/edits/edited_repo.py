"""Edits of format 2: one file is replaced, all at once, if it is still what was decided on.

In a bucket the store compares. In a directory the file is read again right before, and somebody may come in between:
a quiet window is asked for there.
"""

import hashlib
from collections.abc import Callable

from desilt.domain.times import microseconds
from desilt.errors import Conflict, MissingAsset, NotFound, RefsMoved
from desilt.icechunk import seen
from desilt.icechunk.core import PREFIX
from desilt.icechunk.edits import backups
from desilt.icechunk.edits.editing import TRIES, EditTurn
from desilt.icechunk.edits.repo_change import RepoChange
from desilt.icechunk.edits.repo_writing import changed
from desilt.icechunk.format import repo_info
from desilt.icechunk.format.container import AssetKind, opened
from desilt.icechunk.format.repo_info import DELETE_TAG, refuse_unless_online
from desilt.icechunk.layout import REPO
from desilt.objects import conditional
from desilt.objects.conditional import ReadObject
from desilt.objects.promises import check_put_over
from desilt.repository.lease import PROBE
from desilt.repository.snapshot import Snapshot


def replaced(turn: EditTurn, decide: Callable[[Snapshot], RepoChange | None]) -> Snapshot:
    """Makes the change that ``decide`` names of what is there, decided anew as often as it moves; what it was made to.

    Cut off anywhere, it was made or it was not; what it was made to is kept aside before.
    """
    turn.begin()
    core = turn.core
    check_put_over(core.store, f"{PREFIX}{PROBE}")
    for tried in range(TRIES):
        file = _read(turn)
        whole = seen.look(core, turn.relies_on.at)
        if whole.found.seen.revision.mark == hashlib.sha256(file.body).hexdigest():
            change = decide(whole.seen)
            if change is None or _put(turn, file, whole.seen, change):
                return whole.seen
        turn.pause(tried)
    raise RefsMoved("history was edited")


def _read(turn: EditTurn) -> ReadObject:
    try:
        return conditional.read(turn.core.store, REPO)
    except NotFound:
        raise MissingAsset(REPO) from None


def _put(turn: EditTurn, file: ReadObject, whole: Snapshot, change: RepoChange) -> bool:
    """False: somebody moved refs, or ordered something to be kept."""
    _refuse_unless_allowed(file.body, change)
    now = turn.core.clock()
    name = backups.name_at(now)
    body = changed(file.body, change, at=microseconds(now), backup=name)
    turn.announce()
    backups.put(turn.core.store, name, file.body)
    return turn.still_counts(whole) and conditional.put_over(turn.core.store, file, body)


def _refuse_unless_allowed(data: bytes, change: RepoChange) -> None:
    """What its owner has forbidden is not done; the library's own expiration does not ask whether tags may go."""
    info = repo_info.read(opened(data, AssetKind.REPO, REPO))
    refuse_unless_online(info.availability)
    if change.tags and DELETE_TAG in info.switched_off:
        raise Conflict("deleting tags is switched off in this Icechunk repository; plan again without it")
