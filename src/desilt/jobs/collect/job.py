"""Collection: commits that no branch, tag or hold reaches any more, and all that only they had.

Commits go first: from then on each answers *gone*. Then go the objects that only
they had, and the ranges and metaranges that no commit has. Then what desilt itself
keeps and needs no longer. What is younger than the limit stays: ranges are written
before the commit that has them.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from desilt.columns.kernel import DamagedFiles, Judge, judge_buckets
from desilt.domain.reason import Reason
from desilt.errors import NotReadBack
from desilt.jobs.collect import by_listing, kernel, tidy
from desilt.jobs.collect.kernel import METADATA, CollectJudge, OrderJudge, OwnedFile
from desilt.jobs.collect.options import Options, check, limit
from desilt.jobs.collect.unreached import Divided, divide
from desilt.jobs.counts import Counts
from desilt.jobs.job import COMMITTED, Figures, Job, Mark, Stages, Traits, Work
from desilt.jobs.removed import distrust, removed
from desilt.jobs.sets import Recorded
from desilt.records.holds import HoldKind
from desilt.repository.protocol import Repository
from desilt.repository.sealed import seal
from desilt.repository.source import Source, Staged
from desilt.runs.plan import Evidence
from desilt.runs.report import Amount
from desilt.runs.steps import RemoveObjects, TakeCommits, TidyFiles
from desilt.sweep import commits as taking

Answer = TypeVar("Answer")
JOB = "collect"
DROPPED = "and what nothing staged has for"
YOUNG, ORDERED = "kept for being young, or released lately", "kept by holds on prefixes"


def mark(work: Work[Options]) -> Mark:
    """The plan, written into the run's folder."""
    repository, source, run, options = work.repository, work.source, work.run, work.options
    check(repository, options)
    if repository.assets is not None:
        return by_listing.mark(work, repository.assets)
    older_than = limit(options, repository)
    before = run.now - older_than
    stage, recorded = Stages(work.executor.watch), Recorded(repository, run)
    with stage("tickets and staged"):  # before commits: an address only ever moves from the one to the other
        asked, staged = besides_commits(work, recorded, before)
    with stage("commits"):
        seen = source.snapshot(run.now)
        ordered = recorded.ordered(seen.holds)  # of the moment from which a sweep looks for later ones
        asked = replace(asked, held={**asked.held, Reason.HELD: [ordered]})
        tables = kernel.list_tables(repository.store, repository.prefix, repository.layout)
        since = run.now - options.unreached_for
        # after refs were read: then one that goes meanwhile still counts
        spared = source.released_since(since) if options.unreached_for else set()
        divided = divide(seen, source, set(kernel.names_of(tables)), before, spared)
    with stage("ranges"):
        past = removed(work.executor, repository) if divided.dead else []
        asked = replace(asked, removed=tuple(past), entries=entries_of(source, divided))
        prefixes = tuple(hold.value for hold in seen.held(HoldKind.PREFIX))
        if prefixes:
            kept = answered(work, OrderJudge(asked, prefixes), asked.entries, ())
            divided = divided.keeping(frozenset(kept))
            asked = replace(asked, entries=entries_of(source, divided))
    with stage("verdicts"):
        answer = answered(work, asked, asked.entries, Counts())
        stored = Amount(answer.stored_objects, answer.stored_bytes)
        dead_tables = kernel.dead_tables(tables, divided.live_tables, before)
        of_tables = kernel.write_tables(repository.store, f"{work.folder}plan/tables.parquet", dead_tables)
        figures = answer + of_tables
    with stage("own files"):
        own = tidy.found(repository, run, divided.live_tables, before, options.keep_runs)
    names = "".join(f"{name}\n" for name in sorted(divided.live_ranges))
    judged = seal(repository.store, f"{work.folder}inputs/ranges.txt", names.encode())
    going = [seen.commits[name] for name in divided.dead]
    inputs = {
        "commits": len(seen.commits),
        "commits that nothing reaches": len(divided.dead) + divided.young + divided.ordered,
        YOUNG: divided.young,
        ORDERED: divided.ordered,
        "ranges": len(divided.lists.ranges),
        "ranges that only those have that go": len(divided.dead_ranges),
        "staged entries": staged.entries,
        "generation": seen.revision.number,
    }
    return Mark(
        Evidence(
            f"what no ref reaches, older than {older_than}, {DROPPED} {options.dropped_for}",
            seen.revision,
            len(seen.commits),
            held=sum(divided.lists.ranges[name].count for name in divided.live_ranges) + staged.entries,
            stored=stored,
            measure=COMMITTED,
            period=work.now - since,  # by either clock
            dropped_for=options.dropped_for,
            judged=judged,
        ),
        Figures(
            before,
            inputs,
            stage.seconds,
            figures.objects,
            figures.bytes,
            figures.gone,
            names={METADATA: "ranges and metaranges"},
            besides=Amount(tables.num_rows, sum(tables["size_bytes"].to_pylist())),
            history={"commits collected": len(going)},
        ),
        (
            TakeCommits(
                taking.write(repository.store, work.folder, going),
                len(going),
                since if options.unreached_for else None,
            ),
            RemoveObjects(answer.files),
            RemoveObjects(of_tables.files, tables=True),
            TidyFiles(own),
        ),
    )


def besides_commits(work: Work[Options], recorded: Recorded, before: datetime) -> tuple[CollectJudge, Staged]:
    """What holds objects though no commit does: uploads under way, staging areas, the trash."""
    source, run = work.source, work.run
    uploads = source.uploads(run, work.now)
    lately, back = recorded.restored(before), recorded.unsettled()
    staged = source.staged(run)
    held = {
        Reason.STAGED: staged.files,
        Reason.TICKET: [uploads.file],
        Reason.RESTORED: [lately],
        Reason.DROPPED: [source.dropped(run, work.dropped_since(work.options.dropped_for))],
    }
    return CollectJudge(work.repository.layout, held, run.now, before, work.folder, restored=(back,)), staged


def answered(work: Work[Options], judge: Judge[Answer], entries: Sequence[OwnedFile], nothing: Answer) -> Answer:
    """What ``judge`` says, or ``nothing`` where no range goes; a damaged cache is made again by the next run."""
    if not entries:
        return nothing
    answer = judge_buckets(work.executor, work.repository.store.uri, judge, weigh=judged_objects)
    if isinstance(answer, DamagedFiles):
        work.source.distrust(key for key in answer.names if any(one.file.key == key for one in entries))
        distrust(work.repository.store, work.repository.prefix, answer.names)
        raise NotReadBack(min(answer.names))
    return answer


def entries_of(source: Source, divided: Divided) -> tuple[OwnedFile, ...]:
    """The files of the range cache, and whose each of their ranges is; none where no range goes."""
    if not divided.dead_ranges:
        return ()
    wanted = [divided.lists.ranges[name] for name in sorted(divided.lists.ranges)]
    return tuple(
        OwnedFile(
            one.file,
            one.owners,
            frozenset(owner for owner, name in one.ranges.items() if name in divided.live_ranges),
            {owner: name for owner, name in one.ranges.items() if name not in divided.live_ranges},
        )
        for one in source.entries(wanted)
    )


def judged_objects(answer: object) -> int:
    return answer.objects.total() if isinstance(answer, Counts) else 0


def there(repository: Repository, traits: Traits) -> Traits:
    """Where commits are files among others, they come back from the trash as these do."""
    return traits if repository.assets is None else replace(traits, no_way_back="")


NO_WAY_BACK = "is a collection: what it removed cannot be brought back"
job = Job(
    JOB,
    Options,
    mark,
    Traits(
        tables=True,
        no_way_back=NO_WAY_BACK,
        after=("lifecycle", "expire"),
        needs=("expire",),
        edits="commit",
        unseen="in commits that stay",
    ),
    there=there,
)
