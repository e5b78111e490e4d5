"""A mark in figures, and the pages that tell of a run."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from desilt import cycles
from desilt.columns.breakdown import AGES, Breakdown
from desilt.columns.schemas import DIVIDER
from desilt.domain.run import Run
from desilt.executors.executor import HERE
from desilt.jobs import registry, versions
from desilt.jobs.job import Mark
from desilt.objects.file import ObjectFile
from desilt.records import marks
from desilt.render import report as page
from desilt.render.report import PageList, Removed
from desilt.repository.protocol import Repository
from desilt.runs.folder import Folder
from desilt.runs.history import FILE as HISTORY
from desilt.runs.history import Fate, read_change
from desilt.runs.plan import Plan
from desilt.runs.report import Amount, Marks, Report, of_run
from desilt.runs.steps import Action, EditHistory, TakeCommits, TidyFiles
from desilt.sweep import commits

BIGGEST = 10
ROWS_AT_ONCE = 1_000  # a page shows some thousand, however many go


def planned(repository: Repository, run: Run, marked: Mark, plan: Plan) -> Report:
    """The plan in figures."""
    figures, names = marked.figures, {**group_names(repository), **marked.figures.names}
    remove: dict[str, dict[str, Amount]] = {}
    keep: dict[str, Amount] = {}
    for (group, reason), objects in sorted(figures.objects.items()):
        amount = Amount(objects, figures.bytes[group, reason])
        if group:
            name = branch_name(names, group) if figures.by == "branch" else group
            remove.setdefault(name, {})[reason] = amount
        else:
            keep[reason] = amount
    biggest = figures.prefix_bytes.most_common(BIGGEST)
    prefixes = {prefix: Amount(figures.prefix_objects[prefix], size) for prefix, size in biggest}
    own = [files for step in plan.steps_of(TidyFiles) for files in step.files]
    return Report(
        **of_run(run),
        repository=repository.name,
        cutoff=figures.before.isoformat(),
        remove=remove,
        keep=keep,
        prefixes=prefixes,
        ages=by_age(figures.gone),
        uploaded=by_branch(figures.gone, names),
        unseen=figures.unseen or registry.traits(plan.job).unseen,
        inputs=figures.inputs,
        seconds=figures.seconds,
        stored=plan.evidence.stored + figures.besides,
        action=plan.action,
        safety=plan.safety,
        by=figures.by,
        refs={one.name: one.why for one in plan.refs},
        holds=figures.holds,
        argument=repository.argument,
        tables=plan.removes - plan.removes_objects,
        cutoffs=figures.cutoffs,
        history=figures.history,
        frees=figures.frees,
        notes=figures.notes,
        marks=marks_of(repository) if plan.action is Action.MARK else {},
        own={one.what: Amount(one.objects, one.bytes) for one in own},
        bucket_versions=versions.planned(repository, plan),
    )


def marks_of(repository: Repository) -> dict[str, Marks]:
    """What became of all that was ever marked."""
    with repository.records.read() as tx:
        found = marks.counted(tx, repository.uid)
    return {one.state: Marks(one.objects, one.bytes, one.oldest.isoformat()) for one in found}


def by_age(gone: Breakdown) -> dict[str, Amount]:
    """What goes, the youngest first."""
    return {age: Amount(gone.age_objects[age], gone.age_bytes[age]) for age in AGES if gone.age_objects[age]}


def by_branch(gone: Breakdown, names: Mapping[str, str]) -> dict[str, Amount]:
    """What goes, by the branch it was uploaded to, the biggest first."""
    uids = sorted(filter(None, gone.group_objects), key=lambda uid: (-gone.group_bytes[uid], uid))
    return {branch_name(names, uid): Amount(gone.group_objects[uid], gone.group_bytes[uid]) for uid in uids}


def done(repository: Repository, folder: Folder, plan: Plan) -> dict[str, int]:
    """What a plan has done to history by now."""
    found: dict[str, int] = {}
    for taken in plan.steps_of(TakeCommits):
        found["commits collected"] = commits.done(repository, taken)
    for step in plan.steps_of(EditHistory):
        change = read_change(folder.get_text(HISTORY))
        edited, tags = change.count(Fate.EDITED), sum(name.startswith("tag ") for name in change.deleted)
        found |= {
            "edited": edited,
            "abandoned": change.count(Fate.ABANDONED),
            **({"released": change.count(Fate.RELEASED)} if step.released else {}),
            "pointed at": change.count(Fate.POINTED),
            "tags deleted": tags,
            "branches deleted": len(change.deleted) - tags,
        }
        if left_out := len(step.edits) - edited:
            found["edits left out"] = left_out
    return found


@cycles.left_alone()
def publish(
    repository: Repository, folder: Folder, report: Report, plan: Plan, listed: PageList | None = None
) -> PageList:
    """Write ``report`` into the run's folder, as JSON and as a page, and answer with the page's list of what goes.

    A plan's rows never change, so whoever has that list already gives it back as ``listed``.
    """
    edits = any(True for _ in plan.steps_of(EditHistory))
    change = read_change(folder.get_text(HISTORY)) if edits else None
    going = [one for step in plan.steps_of(TakeCommits) for one in commits.listed(repository.store, step)]
    listed = listed or page.page_list(removals(repository, plan, group_names(repository)))
    folder.put_text("report.html", page.render(report, listed, history=change, commits=going))
    folder.put_text("report.json", report.to_json())
    return listed


def removals(repository: Repository, plan: Plan, branches: Mapping[str, str]) -> Iterator[Removed]:
    """What ``plan`` removes, as it is read."""
    for file in plan.files:
        rows = pq.ParquetFile(pa.PythonFile(ObjectFile(repository.store, file.key), mode="r"))
        for batch in rows.iter_batches(ROWS_AT_ONCE):
            for row in batch.to_pylist():
                branch = branch_name(branches, repository.layout.group_of(row["address"]))
                yield Removed(
                    row["address"], row["size_bytes"], row["modified_at"], branch, row["reason"], told(row["detail"])
                )


def told(detail: str) -> str:
    """A plan's detail, for people."""
    rules, _, paths = detail.partition(DIVIDER)
    return f"{rules}: {paths.replace(DIVIDER, ', ')}" if paths else rules


def group_names(repository: Repository) -> Mapping[str, str]:
    """What things are uploaded to, or were, by uid."""
    return repository.source(HERE).group_names()


def branch_name(names: Mapping[str, str], uid: str) -> str:
    return names.get(uid, f"deleted branch {uid}") if uid else ""
