"""Short words for lake tests."""

import pytest

from desilt.lake import refs, staging
from desilt.lake.dropped import Dropping
from desilt.sstable.values import encode_entry


def write(repo, branch, **files):
    """Put ``files`` on ``branch``: keyword names are paths, values are contents."""
    for path, text in files.items():
        repo.put(branch, path, text.encode())


def committed(repo, branch, message="a commit", **files):
    write(repo, branch, **files)
    return repo.commit(branch, message)


def stage(repo, branch, *entries):
    """Stage entries as they are, past every check."""
    with repo.database.write() as tx:
        on = refs.branch(tx, repo.uid, branch)
        for one in entries:
            dropping = Dropping(repo.uid, on.uid, repo.clock())
            staging.stage(tx, on.token, one.path.encode(), encode_entry(one), dropping)


def read(repo, ref, path):
    return b"".join(repo.get(ref, path)).decode()


def contents(repo, ref):
    """Every path and what it reads as."""
    return {entry.path: read(repo, ref, entry.path) for entry in repo.list(ref)}


def changes(found):
    """``+path``, ``-path`` and ``~path``, as a set."""
    marks = {"added": "+", "removed": "-", "changed": "~"}
    return {marks[change.kind] + change.path for change in found}


def seal(repo, branch):
    """Leave a commit behind that died right after it sealed what was staged."""

    def killed(_):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repo.ranges, "put", killed)
        patch.setattr(repo.ranges, "put_metarange", killed)
        with pytest.raises(KeyboardInterrupt):
            repo.commit(branch, "killed")
