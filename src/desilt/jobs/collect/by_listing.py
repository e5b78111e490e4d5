"""Collection where what no ref reaches has no record but in listings: snapshots, logs, manifests and chunks.

What is held is read first: refs, the snapshots that they and holds reach, those that are young, and every manifest that
one of these lists. Then the store is listed, and what is old and in none of them goes: snapshots out of history,
their files, then what only they needed. Nothing that stays ever needs something that goes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from desilt import cycles
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.domain.reason import Reason, Verdict
from desilt.errors import Dangling, NotReadBack, span
from desilt.inventory.listing import total
from desilt.jobs import watermark
from desilt.jobs.collect import backups, still, tidy
from desilt.jobs.collect.folder import AssetFiles, listed, written
from desilt.jobs.collect.living import Living, living
from desilt.jobs.collect.options import LEAST_AGE, RISK, Options, limit
from desilt.jobs.collect.spared import Spared
from desilt.jobs.collect.still import LEFT, Still, read_still
from desilt.jobs.counts import Counts
from desilt.jobs.gc.kernel import GarbageJudge
from desilt.jobs.job import STORED, Figures, Mark, Stages, Work
from desilt.repository.assets import Assets
from desilt.repository.sealed import Sealed, seal
from desilt.runs.plan import Evidence, Next
from desilt.runs.report import Amount
from desilt.runs.steps import RemoveObjects, TakeCommits, TidyFiles
from desilt.sstable.values import RangeData
from desilt.sweep import commits as taking

JOB = "collect"
SNAPSHOTS, LOGS, MANIFESTS, CHUNKS = "snapshots", "transaction logs", "manifests", "chunks"
YOUNG = "kept for being young, or brought back lately"
RACE = (
    "Until it is swept, nobody should create a branch or a tag on a snapshot that no ref reaches, or reset one to it: "
    "refs are read again before each batch, but whoever does so in between names what is going. Nor should a session "
    "be open for {age} before it commits: what it writes is nobody's until then"
)
ONE_WAY = (
    "Snapshots leave the list in `repo` at once. `desilt restore` brings their files back, and not the list: what that "
    "was lies in overwritten/"
)
SAID = {
    "verdict": Verdict.REMOVE.value,
    "reason": Reason.UNREFERENCED.value,
    "detail": "no snapshot that stays refers to it",
}


@cycles.left_alone()
def mark(work: Work[Options], assets: Assets) -> Mark:
    """The plan, written into the run's folder."""
    repository, source, run, at = work.repository, work.source, work.run, assets.folders
    older_than, began = limit(work.options, repository), repository.clock()
    before = (run.now - older_than).replace(microsecond=0)  # what a store tells in whole seconds may be up to one later
    stage, last = Stages(work.executor.watch), read_still(repository, JOB, full=work.request.full)
    with stage("refs and snapshots"):
        seen = source.snapshot(run.now)
        spared = Spared.of(repository, run, seen, before)
        snapshots = listed(repository, at.snapshots, "no branch, tag or hold reaches it")
        found = living(seen, assets, snapshots, before, spared.ids(at.snapshots))
        snapshots.check(found.live, SNAPSHOTS)
    with stage("manifests"):
        lists = source.lists(found.in_time).ranges
        manifests = listed(repository, at.tables, "no snapshot that stays lists it")
        manifests.check(lists.keys(), MANIFESTS)
    name = still.name_of(lists)
    same = last if last.is_so(name, before) else None
    chunks = judged(work, stage, lists, spared, before) if same is None else same.counts
    saved = still.after(chunks, name, began) if same is None else same.again()
    with stage("files of history"):
        logs = listed(repository, at.logs, "no snapshot that stays needs it")
        needed = found.live | assets.logs({one.id for one in found.dead}) | spared.ids(at.logs)
        of_history = (
            written(work, SNAPSHOTS, snapshots.going(found.live, before)),
            written(work, LOGS, logs.going(needed, before)),
            written(work, MANIFESTS, manifests.going(lists.keys() | spared.ids(at.tables), before)),
        )
        copies = backups.going(work, assets, spared)
        own = tidy.found(repository, run, lists.keys() | found.live, before, work.options.keep_runs)
    figures = sum((*of_history, copies), chunks)
    return Mark(
        Evidence(
            "what no branch, tag or hold reaches",
            seen.revision,
            commits=0,  # others take some as well: that there are fewer says nothing
            held=len(found.reached) + sum(one.count for one in lists.values()),
            stored=Amount(chunks.objects.total(), chunks.bytes.total()),
            measure=STORED,
            period=older_than - (run.now - work.now),  # less, where --now is ahead of the clock
            judged=sealed(work, lists),
            least_age=older_than,
        ),
        Figures(
            before,
            inputs(found, lists, (snapshots, logs, manifests), chunks),
            stage.seconds,
            figures.objects,
            figures.bytes,
            chunks.gone,
            by="kind",
            names={CHUNKS: CHUNKS},
            besides=snapshots.amount + logs.amount + manifests.amount,
            unseen="files of metadata that stay",
            history={"commits collected": len(found.dead)} if found.dead else {},
            notes=notes(older_than, same, found),
        ),
        (
            *taken(work, found),
            *(RemoveObjects(one.files, tables=True) for one in of_history),
            RemoveObjects(chunks.files),
            RemoveObjects(copies.files, tables=True),
            TidyFiles(own),
        ),
        Next(last.run or watermark.current(repository, JOB), saved, again=LEFT),
    )


def judged(
    work: Work[Options], stage: Stages, lists: Mapping[str, RangeData], spared: Spared, before: datetime
) -> Counts:
    """A verdict on every chunk that is stored; all that manifests refer to must be among them."""
    repository, source, wanted = work.repository, work.source, [lists[name] for name in sorted(lists)]
    with stage("references"):
        held = [one.held for one in source.entries(wanted)]
    with stage("inventory"):  # after all that is held was read
        stored = source.inventory(work.run).listed

    def answered() -> Counts | DamagedFiles:
        judge = GarbageJudge(
            repository.layout,
            tuple(one.file for one in stored),
            {Reason.COMMITTED: held, **spared.held},
            now=work.run.now,
            before=before,
            copied_at=None,
            folder=work.folder,
            said=SAID,
            whole=True,
        )
        return judge_buckets(work.executor, repository.store.uri, judge, weigh=objects_in, expected=total(stored)[0])

    with stage("verdicts"):
        answer = answered()
        if isinstance(answer, DamagedFiles) and answer.names <= {
            file.key for file in held
        }:  # a cache can be made again
            source.distrust(answer.names)
            held = [one.held for one in source.entries(wanted)]
            answer = answered()
    if isinstance(answer, DamagedFiles):
        raise NotReadBack(min(answer.names))
    if answer.objects.total() != total(stored)[0]:
        raise AssertionError(f"{total(stored)[0]} objects were listed, {answer.objects.total()} got a verdict")
    if answer.missing.count > work.options.accept_missing:
        way_out = f"; if they are lost for good, pass --accept-missing {answer.missing.count}"
        raise Dangling(CHUNKS, answer.missing.count, answer.missing.examples, way_out)
    return answer


def objects_in(answer: Counts) -> int:
    return answer.objects.total()


def notes(older_than: timedelta, same: Still | None, found: Living) -> tuple[str, ...]:
    """What race remains, what --unsafe risks, what was not looked at again, and what the trash cannot bring back."""
    said = [RACE.format(age=span(older_than))]
    if older_than < LEAST_AGE:
        said.append(f"It goes by --older-than {span(older_than)}, and {RISK}")
    if found.dead:
        said.append(ONE_WAY)
    if same is not None:
        said.append(
            f"The same manifests live as when chunks were listed, {same.listed_at:%Y-%m-%d %H:%M} UTC; what was "
            "written since then is too young to go, and is not counted"
        )
    return tuple(said)


def taken(work: Work[Options], found: Living) -> Iterator[TakeCommits]:
    """The step that takes snapshots out of history; where that is in their own files, it has none of them."""
    if dead := found.dead:
        yield TakeCommits(taking.write(work.repository.store, work.folder, dead), len(dead), released_since=None)


def sealed(work: Work[Options], lists: Iterable[str]) -> Sealed:
    """The manifests that were taken into account, beside the plan."""
    names = "".join(f"{name}\n" for name in sorted(lists))
    return seal(work.repository.store, f"{work.folder}inputs/ranges.txt", names.encode())


def inputs(
    found: Living, lists: Mapping[str, RangeData], files: Sequence[AssetFiles], chunks: Counts
) -> dict[str, int]:
    """What the report says it was made from."""
    foreign = sum(one.foreign for one in files) + chunks.objects["", Reason.FOREIGN.value]
    return {
        "snapshots": len(found.live),
        YOUNG: found.unreached,
        "snapshots that leave history": len(found.dead),
        "manifests": len(lists),
        "references": sum(one.count for one in lists.values()),
        "files of other names, which stay": foreign,
        "references to chunks that are missing": chunks.missing.count,
        "generation": found.seen.revision.number,
    }
