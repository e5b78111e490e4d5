"""The runs of a repository: what the ledger remembers, and the plans whose folders are there."""

from dataclasses import dataclass, replace
from datetime import datetime

from desilt.domain.run import Run, started
from desilt.errors import DesiltError, NotFound
from desilt.records import ledger
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.report import Amount, Report, Swept, read_report


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run, in a line."""

    id: str
    job: str
    started_at: datetime
    state: str
    planned: Amount
    swept: Swept | None
    edits: int = 0  # commits that it planned to edit, or to collect
    refs: int = 0  # and branches and tags that it planned to delete


def every(repository: Repository, *, job: str | None = None) -> list[KnownRun]:
    """All runs, newest first."""
    with repository.records.read() as tx:
        rows = {row.id: row for row in ledger.every(tx, repository.uid, job=job)}
    found = [
        KnownRun(
            row.id,
            row.job,
            row.started_at,
            row.state,
            Amount(row.objects, row.bytes),
            outcome(repository, row.id),
            row.edits,
            row.refs,
        )
        for row in rows.values()
    ]
    for name, run_id in folders.runs_of(repository.store, repository.prefix, job=job):
        if run_id not in rows:
            found.append(_planned(repository, Run(run_id, name, started(run_id))))
    return sorted(found, key=lambda known: known.id)


def outcome(repository: Repository, run_id: str) -> Swept | None:
    """What the ledger says of a run."""
    with repository.records.read() as tx:
        row, total = ledger.find(tx, repository.uid, run_id), ledger.total(ledger.batches(tx, repository.uid, run_id))
    if row is None:
        return None
    counts = total.asked, total.removed, total.gone, total.failed, total.held_again, total.removed_bytes
    return Swept(row.state, row.action, *counts)


def report_of(repository: Repository, wanted: str) -> Report:
    """The report of a run, with what the ledger says of its outcome."""
    run = folders.find(repository.store, repository.prefix, wanted)
    try:
        report = read_report(Folder(repository.store, repository.prefix, run).get_text("report.json"))
    except NotFound:
        raise NotFound("report of run", run.id, "it was cut off before it had planned anything") from None
    return replace(report, swept=report.swept or outcome(repository, run.id))


def _planned(repository: Repository, run: Run) -> KnownRun:
    try:
        made = plans.read(Folder(repository.store, repository.prefix, run), repository.secret)
    except DesiltError:  # cut off before it was finished, or of another version: still a run
        return KnownRun(run.id, run.job, run.now, "unfinished", Amount(), None)
    return KnownRun(run.id, run.job, run.now, "planned", made.removes, None, made.edits, len(made.refs))
