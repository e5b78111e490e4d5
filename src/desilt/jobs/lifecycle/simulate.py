"""A policy replayed over the past: what a run on each day would have removed, had it been in force.

Every day is judged as a real run judges it: it looks into the commits in which
something may have come of age since the day before, and at what was deferred
then. What an earlier day took is gone on the later ones, in the simulation's own
folder alone: nothing is removed, no lock is taken, no watermark moves.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from desilt.columns.files import HeldFile
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.columns.layout import Layout
from desilt.domain import cutoffs
from desilt.domain.policy import Policy
from desilt.domain.potential import Last, after, from_bits, potential
from desilt.domain.reason import Reason
from desilt.domain.run import SIMULATIONS, Run, new_run
from desilt.domain.times import check_date
from desilt.errors import BadRequest, NotReadBack
from desilt.executors.executor import Executor
from desilt.jobs.lifecycle.job import dates
from desilt.jobs.lifecycle.past import as_of
from desilt.jobs.lifecycle.reach import reached
from desilt.jobs.lifecycle.replay import Ground, ground, reaching
from desilt.jobs.lifecycle.tally import Many, Part, Tally, folded, tally
from desilt.jobs.removed import removed
from desilt.jobs.rules.kernel import RuleJudge
from desilt.jobs.sets import Recorded
from desilt.render import simulation as simulation_html
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Source
from desilt.runs import folder as folders
from desilt.runs.folder import Folder
from desilt.runs.report import Amount
from desilt.runs.simulation import FIGURES, NEW, OLD, PAGE, Side, Simulation, Step

MOST = 1_000  # days: more of them, and somebody has mistaken the unit of --every
FILES = 64  # of what earlier days took; more are folded into one

NOTES = (
    "Judged by the branches and tags there are today; those that were deleted since, lifted holds, and where a branch "
    "stood before it was moved by hand are not on record. What only a deleted branch reached stays; what only a "
    "deleted tag or a lifted hold kept counts as gone.",
    "Staging areas have no past: what is staged, and what was lately brought back from the trash, counts on the last "
    "day only.",
    "What real runs have removed is not counted. An object that several rules match is told under the first of them; "
    "one that several branches reach counts on each, and once in the totals.",
)
OF_BRANCHES = "Rules that remove branches are not replayed."


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What to replay, over which days."""

    new: Policy
    old: Policy | None
    first: datetime
    last: datetime | None = None  # None: what the clock says
    every: timedelta = timedelta(days=1)


def simulate(repository: Repository, executor: Executor, ask: Rehearsal) -> Simulation:
    """Replay one policy or two; the figures and their page are in the simulation's folder."""
    clock = repository.clock()
    days = moments(ask, clock)
    run = _opened(repository, clock, days[-1])
    executor.watch.begins("reading")
    source, recorded = repository.source(executor), Recorded(repository, run)
    staged = source.staged(run)  # before commits: an entry only ever moves from the one to the other
    lately = recorded.restored(days[-1] - repository.grace)
    history = source.snapshot(days[0])
    base = ground(source, history)
    gone, back = removed(executor, repository), (recorded.unsettled(),)
    replays = {
        name: Replay(
            *(repository.store.uri, repository.layout, source, executor, run, policy),
            *(f"{repository.prefix}{run.folder}{name}/", base, gone, back),
        )
        for name, policy in ((NEW, ask.new), (OLD, ask.old))
        if policy is not None
    }
    executor.watch.begins("replaying days")
    executor.watch.expects(len(days) * len(replays))
    for at in days:
        then = history_at(history, at, clock)
        held = {Reason.STAGED: staged.files, Reason.RESTORED: [lately]} if at == days[-1] else {}
        for replay in replays.values():
            replay.steps.append(replay.step(at, then, held))
            executor.watch.advance(1)
    sides = [Side(name, one.policy.fingerprint, tuple(one.steps)) for name, one in replays.items()]
    notes = (*NOTES, OF_BRANCHES) if ask.new.branches or (ask.old and ask.old.branches) else NOTES
    found = Simulation(run.id, repository.name, ask.every, tuple(sides), notes)
    folder = Folder(repository.store, repository.prefix, run)
    folder.put_text(PAGE, simulation_html.render(found))
    folder.put_text(FIGURES, found.to_json())
    return found


def moments(ask: Rehearsal, clock: datetime) -> list[datetime]:
    """From the first day on, in steps, and the last one in any case."""
    first, last = check_date(ask.first), check_date(ask.last or clock)
    if last > clock:
        raise BadRequest(f"--to {last.isoformat()} is ahead of this clock, {clock.isoformat()}; look back only")
    if first > last:
        raise BadRequest(f"--from {first.isoformat()} is after --to {last.isoformat()}; the earlier one is --from")
    if ask.every < timedelta(minutes=1):
        raise BadRequest(f"--every {ask.every} is too short; write 1d, or at least 1m")
    steps = (last - first) // ask.every
    if steps >= MOST:
        raise BadRequest(f"that makes {steps + 1:,} days to replay, the limit is {MOST:,}; raise --every, or --from")
    days = [first + number * ask.every for number in range(steps + 1)]
    return days if days[-1] == last else [*days, last]


def history_at(history: Snapshot, at: datetime, clock: datetime) -> Snapshot:
    """The present as it is, though commits made in one moment are dated a little ahead; else what there was."""
    if at < clock:
        return as_of(history, at)
    return history.with_holds_at(at)


def _opened(repository: Repository, clock: datetime, now: datetime) -> Run:
    last = folders.newest(repository.store, repository.prefix)
    return new_run(SIMULATIONS, now=now, started_at=clock, entropy=os.urandom(4), last=last)


@dataclass(slots=True)
class Replay:
    """A policy at work, day after day; what one day leaves to the next."""

    store: str
    layout: Layout
    source: Source
    executor: Executor
    run: Run
    policy: Policy
    folder: str
    ground: Ground
    gone: Sequence[HeldFile]  # by real runs
    back: tuple[HeldFile, ...]  # and what of that is there after all
    taken: list[HeldFile] = field(default_factory=list)  # by the days before
    deferred: tuple[HeldFile, ...] = ()
    last: Last | None = None
    steps: list[Step] = field(default_factory=list)

    def step(self, at: datetime, history: Snapshot, held: Mapping[Reason, Sequence[HeldFile]]) -> Step:
        """What a run at ``at`` removes."""
        folder = f"{self.folder}{at:%Y%m%dT%H%M%S.%f}/"
        now, dated = cutoffs.resolve(self.policy, history.names, at), dates(history)
        looked_into = set(dated) if self.last is None else potential(dated, self.last, now)
        self.last = after(dated, self.last, now)
        found = reached(self.source, history, self.policy, now, looked_into)
        judge = RuleJudge(
            self.layout,
            self.run.id,
            self.run.now,
            tuple(found.entries),
            found.terms,
            held,
            self.deferred,
            tuple(self.gone),
            self.back,
            folder,
            taken=tuple(self.taken),
        )
        answer = judge_buckets(self.executor, self.store, judge)
        if isinstance(answer, DamagedFiles):
            self.source.distrust(key for key in answer.names if any(one.file.key == key for one in found.entries))
            raise NotReadBack(min(answer.names))
        self.deferred = answer.deferred
        who = reaching(self.ground, history.commits, history.bits)
        parts = [
            Part(self.store, table, who, f"{folder}taken/{number:05d}.parquet")
            for number, table in enumerate(answer.tables)
        ]
        counted = sum(self.executor(tally, parts), Tally())
        self._take(self.store, counted.files, folder)
        return step_of(at, counted, history.names)

    def _take(self, store: str, files: Sequence[HeldFile], folder: str) -> None:
        self.taken += files
        if len(self.taken) > FILES:
            self.taken = self.executor(folded, [Many(store, tuple(self.taken), f"{folder}taken/all.parquet")])


def step_of(at: datetime, counted: Tally, names: list[str]) -> Step:
    """What was counted, by the names of branches."""
    rules: dict[str, Amount] = {}
    by_rule: dict[str, dict[str, Amount]] = {}
    for (rule, bits), objects in sorted(counted.objects.items()):
        amount = Amount(objects, counted.bytes[rule, bits])
        rules[rule] = rules.get(rule, Amount()) + amount
        branches = by_rule.setdefault(rule, {})
        for name in sorted(from_bits(bits, names)):
            branches[name] = branches.get(name, Amount()) + amount
    return Step(at, rules, by_rule)
