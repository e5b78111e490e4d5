"""How much there is, where, how old, and how it grew. No run is made, and nothing is left behind but caches."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from desilt.columns.breakdown import AGES
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.errors import NotReadBack
from desilt.executors.executor import Executor
from desilt.jobs.job import Stages
from desilt.jobs.lifecycle.replay import ground
from desilt.jobs.pins.pins import pins
from desilt.jobs.pins.weigh import restored
from desilt.jobs.removed import distrust, removed
from desilt.jobs.stats.kernel import StatsCounts, StatsJudge
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.records.removals import State
from desilt.repository.protocol import Repository
from desilt.repository.source import Source
from desilt.runs.pins import Pins
from desilt.runs.report import Amount
from desilt.runs.stats import BranchStats, MonthStats, Stats

FOLDERS = 20
DEPTH = 1


def stats(repository: Repository, executor: Executor, *, folders: int = FOLDERS, depth: int = DEPTH) -> Stats:
    """A repository in figures; the ``folders`` biggest, cut after ``depth`` of them."""
    now, source = repository.clock(), repository.source(executor)
    kept = pins(repository, executor, limit=0)
    with Stages(executor.watch)("ages and folders"):
        seen = source.snapshot(now)
        base = ground(source, seen)
        judge = StatsJudge(
            tuple((one.file, frozenset(one.ranges)) for one in base.placed),
            tuple(removed(executor, repository)),
            restored(repository),
            now,
            depth,
        )
        counts = answered(repository, executor, source, judge)
    with repository.records.read() as tx:
        trash = Amount(*tombstones.total_in(tx, repository.uid, State.TRASHED))
        by_month = {month: Amount(*some) for month, some in ledger.removed_by_month(tx, repository.uid).items()}
    biggest = sorted(counts.folder_objects, key=lambda name: (-counts.folder_bytes[name], name))
    called = source.called(biggest[:folders])
    return Stats(
        repository.name,
        now,
        Amount(counts.age_objects.total(), counts.age_bytes.total()),
        kept.nothing,
        staged_alone(kept),
        trash,
        len(seen.commits),
        by_branch(kept),
        {
            called.get(name, name): Amount(counts.folder_objects[name], counts.folder_bytes[name])
            for name in biggest[:folders]
        },
        len(biggest[folders:]),
        {age: Amount(counts.age_objects[age], counts.age_bytes[age]) for age in AGES if counts.age_objects[age]},
        grown(counts.month_objects, counts.month_bytes, by_month, now),
    )


def answered(repository: Repository, executor: Executor, source: Source, judge: StatsJudge) -> StatsCounts:
    """What the judge says; a damaged cache is made again by whoever asks next."""
    answer = judge_buckets(executor, repository.store.uri, judge)
    if isinstance(answer, DamagedFiles):
        source.distrust(sorted({held.key for held, _ in judge.entries} & answer.names))
        distrust(repository.store, repository.prefix, answer.names)
        raise NotReadBack(min(answer.names))
    return answer


def by_branch(kept: Pins) -> tuple[BranchStats, ...]:
    """What each branch keeps, with what is staged on it; the biggest first."""
    staged = {
        one.name.removeprefix("staged on "): one.reaches for one in kept.pins if one.name.startswith("staged on ")
    }
    found = [
        BranchStats(name, one.reaches, one.alone, staged.get(name, Amount()))
        for one in kept.pins
        if one.name.startswith("branch ")
        for name in [one.name.removeprefix("branch ")]
    ]
    return tuple(sorted(found, key=lambda one: (-one.reaches.bytes, one.branch)))


def staged_alone(kept: Pins) -> Amount:
    """What only staging areas keep."""
    return sum((one.alone for one in kept.pins if one.name.startswith("staged on ")), Amount())


def grown(
    objects: Counter[str], volume: Counter[str], removed: Mapping[str, Amount], now: datetime
) -> tuple[MonthStats, ...]:
    """Every month from the first on that anything came or went in."""
    known = sorted({*objects, *removed})
    if not known:
        return ()
    year, month = map(int, known[0].split("-"))
    found = []
    while f"{year:04d}-{month:02d}" <= max(known[-1], f"{now:%Y-%m}"):
        name = f"{year:04d}-{month:02d}"
        found.append(MonthStats(name, Amount(objects[name], volume[name]), removed.get(name, Amount())))
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return tuple(found)
