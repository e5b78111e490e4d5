"""A lake with a long past, made directly: a commit a day, each changing the same small share of a branch.

Ten thousand entries, half of them under a prefix with a rule. Every day a hundred
of either half are written anew; old branches stand along the way.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from desilt.domain.entry import Entry
from desilt.domain.history import Commit, new_commit
from desilt.lake import Lake, LakeRepository, commits, refs
from desilt.lake.apply import apply
from desilt.lake.lake import locate
from desilt.lake.staging import CHANGES
from desilt.sstable.ranges import Ranges
from desilt.sstable.values import encode_entry
from large_lake import ADDRESS

START = datetime(2030, 1, 1, tzinfo=UTC)  # after what the names of objects say
DAY = timedelta(days=1)
HALVES = ("data", "logs")  # in the order of keys
EACH = 5_000  # entries in a half
CHANGED = 100  # of a half, every day
RAGGEDNESS = 500  # entries to a range: a change rewrites a few of them, as in a big branch
BRANCHES = 4  # beside main


def make(directory: Path, days: int) -> LakeRepository:
    """A commit for each of so many days; old branches at even distances."""
    repo = Lake.create(locate(f"{directory}/lake")).create_repository("bench", clock_at=START - DAY)
    made = add(repo, range(days))
    for number in range(BRANCHES):
        name = f"release-{number}"
        repo.create_branch(name, "main")
        point(repo, name, made[number * days // BRANCHES])
    repo.set_clock(START + (days - 1) * DAY + DAY / 2)
    return repo


def add(repo: LakeRepository, days: range) -> list[Commit]:
    """The commits of ``days``, on main."""
    ranges = Ranges(repo.store, repo.prefix, raggedness=RAGGEDNESS)
    made = []
    parent = repo.resolve("main").commit
    for day in days:
        metarange = apply(ranges, parent.metarange, [changes(day)])
        parent = new_commit(
            parents=[parent],
            metarange=metarange,
            created_at=START + day * DAY,
            committer="",
            message=str(day),
            metadata={},
        )
        made.append(parent)
    with repo.database.write() as tx:
        for commit in made:
            commits.insert(tx, repo.uid, commit)
    point(repo, "main", parent)
    return made


def point(repo: LakeRepository, name: str, commit: Commit) -> None:
    with repo.database.write() as tx:
        refs.move(tx, refs.branch(tx, repo.uid, name).uid, head=commit.id)


def changes(day: int) -> pa.RecordBatch:
    """What is written on a day: on the first everything, then a run of paths in either half."""
    rows = list(_changes(day))
    keys, values = ([row[column] for row in rows] for column in (0, 1))
    return pa.record_batch([pa.array(keys, pa.binary()), pa.array(values, pa.binary())], schema=CHANGES)


def _changes(day: int) -> Iterator[tuple[bytes, bytes]]:
    at = int((START + day * DAY).timestamp() - 60) * 10**9
    count, first = (EACH, 0) if day == 0 else (CHANGED, day * CHANGED % EACH)
    for half, name in enumerate(HALVES):
        for place in range(first, first + count):
            number = (2 * day + half) * EACH + place
            entry = Entry("", ADDRESS.format(branch=day % 10_000, number=number), 1_000, "0" * 32, at)
            yield f"{name}/{place:06d}".encode(), encode_entry(entry)
