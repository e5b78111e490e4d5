"""A mark in figures, and the pages that tell of a run."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from desilt.domain.run import Run
from desilt.jobs.job import Marked
from desilt.lake.repository import Repository
from desilt.objects.file import ObjectFile
from desilt.runs import html
from desilt.runs.folder import Folder
from desilt.runs.history import FILE as HISTORY
from desilt.runs.history import Fate, read_change
from desilt.runs.html import Removed
from desilt.runs.plan import Plan
from desilt.runs.report import Amount, Report, of_run
from desilt.sweep import commits

BIGGEST = 10


def planned(repository: Repository, run: Run, marked: Marked, action: str) -> Report:
    """The plan in figures."""
    remove: dict[str, dict[str, Amount]] = {}
    keep: dict[str, Amount] = {}
    for (branch, reason), objects in sorted(marked.answer.objects.items()):
        amount = Amount(objects, marked.answer.bytes[branch, reason])
        if branch:
            name = branch_name(marked.branches, branch) if marked.by == "branch" else branch
            remove.setdefault(name, {})[reason] = amount
        else:
            keep[reason] = amount
    biggest = marked.answer.prefix_bytes.most_common(BIGGEST)
    prefixes = {prefix: Amount(marked.answer.prefix_objects[prefix], size) for prefix, size in biggest}
    return Report(
        **of_run(run),
        repository=repository.name,
        cutoff=marked.before.isoformat(),
        remove=remove,
        keep=keep,
        prefixes=prefixes,
        inputs=marked.inputs,
        seconds=marked.seconds,
        stored=marked.stored + marked.besides,
        action=action,
        by=marked.by,
        refs={one["name"]: one["why"] for one in marked.refs},
        holds=marked.holds,
        history=marked.told,
        own={one["what"]: Amount(one["objects"], one["bytes"]) for one in marked.tidies},
    )


def done(repository: Repository, folder: Folder, plan: Plan) -> dict[str, int]:
    """What a plan has done to history by now."""
    if not plan.history:
        return {}
    if "edits" not in plan.history:
        return {"commits collected": commits.done(repository, plan)}
    change = read_change(folder.get_text(HISTORY))
    edited, tags = change.count(Fate.EDITED), sum(name.startswith("tag ") for name in change.deleted)
    found = {
        "edited": edited,
        "abandoned": change.count(Fate.ABANDONED),
        "pointed at": change.count(Fate.POINTED),
        "tags deleted": tags,
        "branches deleted": len(change.deleted) - tags,
        "edits left out": plan.edits - edited,
    }
    return {name: count for name, count in found.items() if count or name != "edits left out"}


def publish(repository: Repository, folder: Folder, report: Report, plan: Plan) -> None:
    """Write ``report`` into the run's folder, as JSON and as a page."""
    names = {branch.uid: branch.name for branch in repository.branches()}
    edits = plan.history is not None and "edits" in plan.history
    change = read_change(folder.get_text(HISTORY)) if edits else None
    folder.put_text("report.html", html.render(report, removals(repository, plan, names), history=change))
    folder.put_text("report.json", report.to_json())


def removals(repository: Repository, plan: Plan, branches: Mapping[str, str]) -> Iterator[Removed]:
    """What ``plan`` removes, as it is read."""
    for file in plan.files:
        rows = pq.ParquetFile(pa.PythonFile(ObjectFile(repository.store, file.key), mode="r"))
        for batch in rows.iter_batches():
            for row in batch.to_pylist():
                where = row["address"].split("/")
                branch = branch_name(branches, where[1] if len(where) > 2 else "")
                yield Removed(
                    row["address"], row["size_bytes"], row["modified_at"], branch, row["reason"], told(row["detail"])
                )


def told(detail: str) -> str:
    """A plan's detail, for people."""
    rules, divided, paths = detail.partition("\0")
    return f"{rules}: {paths.replace(chr(0), ', ')}" if divided else detail


def branch_name(branches: Mapping[str, str], uid: str) -> str:
    return branches.get(uid, f"deleted branch {uid}")
