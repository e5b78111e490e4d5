"""When history was last edited by us, in a repository elsewhere: plans from before that rely on what it was."""

from datetime import datetime

from desilt.records import revisions, watermarks
from desilt.records.database import Transaction

HISTORY = "history"  # a name that no job has


def begin(tx: Transaction, repository: str, run: str, *, now: datetime) -> int:
    """An edit is about to be made: a number of its own, in the order of all that moves refs."""
    number = revisions.order(tx, repository, now=now)
    watermarks.write(tx, repository, HISTORY, run, {"edited": number})
    return number


def last(tx: Transaction, repository: str) -> int:
    """The number of the last one, 0 if there was none."""
    found = watermarks.find(tx, repository, HISTORY)
    return int(found[1].get("edited", 0)) if found else 0
