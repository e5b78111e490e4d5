"""The sample history of seed 003 as a lake: commit N is made on day N.

It writes N to a path named as its branch, which later commits of other branches keep,
and to "lone", which every commit has for itself.
"""

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache

from desilt.lake import Lake
from desilt.lake.lake import locate

START = datetime(2026, 1, 1, tzinfo=UTC)
CUTOFF = START + timedelta(days=8)  # 8 is the first that is young


def sample(where, *, db=None):
    """The lake, the repository, and its commits by the seed's numbers."""
    if db is not None:
        return built(where, db)
    folder, made = built_once()
    shutil.copytree(folder.name, where)
    lake = Lake.open(locate(str(where)))
    return lake, lake.repository("sample"), dict(made)


@cache
def built_once():
    """One that others are copies of, and its commits."""
    folder = tempfile.TemporaryDirectory()
    lake, _, made = built(folder.name)
    lake.close()
    return folder, made


def built(where, db=None):
    lake = Lake.create(locate(str(where), db=db))
    repo = lake.create_repository("sample", clock_at=START)
    made = {"0": repo.resolve("main").commit.id}

    def commit(branch, number):
        repo.set_clock(START + timedelta(days=number))
        repo.put(branch, branch, str(number).encode())
        repo.put(branch, "lone", f"of {number}".encode())
        made[str(number)] = repo.commit(branch, str(number)).id

    commit("main", 1)
    commit("main", 2)
    repo.create_branch("develop", "main")
    commit("develop", 3)
    repo.create_tag("tag1", made["3"])
    commit("main", 4)
    commit("main", 5)
    repo.create_tag("tag2", made["5"])
    commit("develop", 6)
    repo.create_branch("test", "develop")
    commit("test", 7)
    repo.create_branch("qa", "test")
    commit("qa", 8)
    commit("test", 9)
    commit("develop", 10)
    commit("develop", 11)
    commit("main", 12)
    commit("main", 13)
    commit("main", 14)
    return lake, repo, made
