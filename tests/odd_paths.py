"""Paths that no `put` takes, in a lake all the same: as lakeFS commits them, and as an import would bring them."""

from desilt.domain.entry import decode_path
from desilt.lake import refs

STAND_IN = "stands in for another"


def stage_odd(repo, branch, path, text=b"x"):
    """Stage ``text`` at ``path``, which is any bytes; the address."""
    address = repo.put(branch, STAND_IN, text).address
    with repo.database.write() as tx:
        token = refs.branch(tx, repo.uid, branch).token
        tx.execute("DELETE FROM staging WHERE token = ? AND path = ?", token, path)
        tx.execute("UPDATE staging SET path = ? WHERE token = ? AND path = ?", path, token, STAND_IN.encode())
    return address


def commit_odd(repo, branch, *paths, message="odd", text=b"x"):
    """A commit of ``paths``, which are any bytes; their addresses."""
    found = [stage_odd(repo, branch, path, text) for path in paths]
    repo.commit(branch, message)
    return found


def listed(repo, ref, **where):
    """The paths there, as bytes."""
    return [entry.path.encode(errors="surrogateescape") for entry in repo.list(ref, **where)]


def text(path):
    """As Python has it."""
    return decode_path(path)
