"""Collection: commits that no branch, tag or hold reaches any more, and all that only they had.

Commits go first: from then on each answers *gone*. Then go the objects that only
they had, and the ranges and metaranges that no commit has. Then what desilt itself
keeps and needs no longer. What is younger than the limit stays: ranges are written
before the commit that has them.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.errors import BadRequest, CorruptTable
from desilt.jobs import collecting, tidy
from desilt.jobs.collecting import METADATA, Entries, Question
from desilt.jobs.job import COMMITTED, Ask, Job, Marked, Stages, dropped_since
from desilt.jobs.judging import Answer
from desilt.jobs.place import opening
from desilt.lake.holds import Kind
from desilt.lake.locks import Lock
from desilt.lake.ranges import FOLDER as RANGES
from desilt.lake.repository import Repository
from desilt.runs.plan import Plan
from desilt.runs.report import Amount
from desilt.sources import range_cache
from desilt.sources.lake import LakeSource, Staged
from desilt.sources.reached import read_history
from desilt.sources.removed import distrust, removed
from desilt.sources.spread import Spread
from desilt.sources.unreached import Divided, divide, let_go_since
from desilt.sweep import commits as taking
from desilt.sweep import tidying

JOB = "collect"
LEAST_AGE = timedelta(hours=1)
CLOCK_MARGIN = timedelta(minutes=10)
YOUNG, ORDERED = "kept for being young, or let go of lately", "kept by holds on prefixes"


def mark(run: Run, source: LakeSource, spread: Spread, ask: Ask) -> Marked:
    """The plan, written into the run's folder."""
    core, repository = source.repository.core, source.repository
    older_than = limit(ask, core.ticket_life)
    before = run.now - older_than
    stage = Stages(spread.watch)
    with stage("tickets and staged"):  # before commits: an address only ever moves from the one to the other
        asked, staged = besides_commits(run, source, before, dropped_since(ask, run.now, core.clock()))
    with stage("commits"):
        history = read_history(core, run.now)
        ordered = source.held(run, history.holds)  # of the moment from which a sweep looks for later ones
        asked = replace(asked, held={**asked.held, Reason.HELD: [ordered]})
        tables = collecting.list_tables(core.store, core.prefix)
        since = run.now - ask.unreached_for
        with core.database.read() as tx:  # after refs were read: then one that goes meanwhile still counts
            spared = let_go_since(tx, core, since) if ask.unreached_for else set()
        divided = divide(history, core, set(collecting.names_of(tables)), before, spared)
    with stage("ranges"):
        past = removed(spread, repository, opening(repository, spread)) if divided.dead else []
        asked = replace(asked, removed=tuple(past), entries=entries_of(source, spread, divided))
        prefixes = tuple(hold.value for hold in history.holds if hold.kind is Kind.PREFIX)
        if prefixes:
            kept = answered(source, spread, collecting.ordered, replace(asked, prefixes=prefixes)).ranges
            divided = divided.keeping(kept)
            asked = replace(asked, entries=entries_of(source, spread, divided))
    with stage("verdicts"):
        answer = answered(source, spread, collecting.judge, asked)
        stored = Amount(answer.stored_objects, answer.stored_bytes)
        dead_tables = collecting.dead_tables(tables, divided.live_tables, before)
        answer += collecting.write_tables(core.store, f"{core.prefix}{run.folder}plan/tables.parquet", dead_tables)
    with stage("own files"):
        own = tidy.found(repository, run, divided.live_tables, before, ask.keep_runs)
    judged_ranges = "".join(f"{name}\n" for name in sorted(divided.live_ranges))
    core.store.put(f"{core.prefix}{run.folder}inputs/ranges.txt", [judged_ranges.encode()])
    inputs = {
        "commits": len(history.commits),
        "commits that nothing reaches": len(divided.dead) + divided.young + divided.ordered,
        YOUNG: divided.young,
        ORDERED: divided.ordered,
        "ranges": len(divided.lists.ranges),
        "ranges that only those have that go": len(divided.dead_ranges),
        "staged entries": staged.entries,
        "generation": history.generation,
    }
    return Marked(
        answer,
        f"what no ref reaches, older than {older_than}",
        before,
        {**staged.branches, METADATA: "ranges and metaranges"},
        inputs,
        stage.seconds,
        history.generation,
        history.mark,
        held=sum(divided.lists.ranges[name].count for name in divided.live_ranges) + staged.entries,
        stored=stored,
        measure=COMMITTED,
        dropped_for=ask.dropped_for,
        period=min(run.now, core.clock()) - since,  # by either clock
        besides=Amount(tables.num_rows, sum(tables["size_bytes"].to_pylist())),
        base="",
        saves=None,
        history={
            **taking.write(repository, run, [history.commits[name] for name in divided.dead]),
            "since": since.isoformat() if ask.unreached_for else None,
        },
        told={"commits collected": len(divided.dead)},
        tidies=own,
    )


def besides_commits(
    run: Run, source: LakeSource, before: datetime, dropped_since: datetime | None
) -> tuple[Question, Staged]:
    """What holds objects though no commit does: uploads under way, staging areas, the trash."""
    core = source.repository.core
    tickets = source.open_tickets(run, min(run.now, core.clock()))
    lately, back = source.restored(run, before), source.unsettled(run)
    staged = source.staged(run)
    held = {
        Reason.STAGED: staged.files,
        Reason.TICKET: [tickets.file],
        Reason.RESTORED: [lately],
        Reason.DROPPED: [source.dropped(run, dropped_since)],
    }
    return Question(core.store.uri, held, before, f"{core.prefix}{run.folder}", restored=(back,)), staged


def answered(source: LakeSource, spread: Spread, work: Callable[[Question], Answer], asked: Question) -> Answer:
    """The answer to all of it; a cache that is damaged is made again by the next run."""
    answer = sum(spread(work, collecting.cut(asked, spread.width), weigh=judged), Answer())
    if answer.damaged:
        source.distrust(key for key in answer.damaged if any(one.file.key == key for one in asked.entries))
        distrust(source.repository.store, source.repository.prefix, answer.damaged)
        raise CorruptTable(min(answer.damaged), "it could not be read back; run again")
    return answer


def entries_of(source: LakeSource, spread: Spread, divided: Divided) -> tuple[Entries, ...]:
    """The files of the range cache, and whose each of their ranges is; none where no range goes."""
    if not divided.dead_ranges:
        return ()
    core = source.repository.core
    wanted = [divided.lists.ranges[name] for name in sorted(divided.lists.ranges)]
    return tuple(
        Entries(
            one.file,
            frozenset(owner for owner, name in one.ranges.items() if name in divided.live_ranges),
            {owner: name for owner, name in one.ranges.items() if name not in divided.live_ranges},
        )
        for one in range_cache.placed(spread, core.store, core.prefix, wanted, source=RANGES)
    )


def limit(ask: Ask, ticket_life: timedelta) -> timedelta:
    """How old something must be."""
    if ask.older_than is None:
        return ticket_life + CLOCK_MARGIN
    if ask.older_than < LEAST_AGE:
        raise BadRequest("--older-than is less than 1h; a commit that is being written may take that long")
    return ask.older_than


def judged(answer: Answer) -> int:
    return answer.objects.total()


def policy(_repository: Repository, plan: Plan) -> str:
    """What the plan was told: there is nothing else to go by."""
    return plan.policy


def tidied(repository: Repository, lock: Lock, plan: Plan) -> Mapping[str, str]:
    tidying.tidy(repository, lock, plan)
    return {}


job = Job(JOB, mark, policy, before=taking.take, after=tidied)
