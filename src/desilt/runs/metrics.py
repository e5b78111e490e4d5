"""Figures of runs in the text format of Prometheus: a file that a node exporter's textfile collector reads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from desilt.records import ledger, marks
from desilt.records import removals as tombstones
from desilt.records.ledger import RunState
from desilt.records.removals import MARKS, State
from desilt.repository.protocol import Repository
from desilt.runs.report import Report

Labels = Mapping[str, str]

WAITING = (*MARKS, State.RESTORING)  # marked, and not gone


@dataclass(slots=True)
class Metric:
    """One figure, for as many labels as there are."""

    name: str
    help: str
    samples: list[tuple[Labels, float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> None:
        self.samples.append((labels, value))

    def lines(self) -> Iterable[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} gauge"
        for labels, value in self.samples:
            said = ",".join(f'{name}="{escaped(text)}"' for name, text in labels.items())
            yield f"{self.name}{{{said}}} {value:.10g}"


def escaped(text: str) -> str:
    """A label as the format has it; what is no UTF-8 in a name is spelled out."""
    plain = text.encode(errors="backslashreplace").decode()
    return plain.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def metrics(repository: Repository, reports: Sequence[Report], exit_codes: Mapping[str, int]) -> str:
    """What ``reports`` say, how jobs ended, and what the records know of earlier runs."""
    last = {report.job: report for report in reports}  # of one that was finished before, only what came last
    found = [
        *_of_reports(repository.name, list(last.values())),
        *_of_ends(repository, exit_codes),
        *_of_records(repository),
    ]
    return "".join(f"{line}\n" for metric in found if metric.samples for line in metric.lines())


def _of_reports(name: str, reports: Sequence[Report]) -> list[Metric]:
    planned = Metric("desilt_planned_objects", "Objects that the last plan would remove.")
    planned_bytes = Metric("desilt_planned_bytes", "Bytes of those.")
    removed = Metric("desilt_removed_objects", "Objects that the last run removed, or moved to the trash.")
    removed_bytes = Metric("desilt_removed_bytes", "Bytes of those.")
    gone = Metric("desilt_already_gone_objects", "Objects that were gone before the last run came to them.")
    held = Metric("desilt_held_again_objects", "Planned objects that something held again by the time.")
    failed = Metric("desilt_failed_objects", "Objects that the store failed to remove; the next run tries again.")
    seconds = Metric("desilt_stage_seconds", "How long each stage took.")
    for report in reports:
        of = {"repository": name, "job": report.job}
        planned.add(report.removed.objects, **of)
        planned_bytes.add(report.removed.bytes, **of)
        for stage, took in report.seconds.items():
            seconds.add(took, **of, stage=stage)
        if report.swept is not None:
            removed.add(report.swept.removed, **of)
            removed_bytes.add(report.swept.bytes, **of)
            gone.add(report.swept.gone, **of)
            held.add(report.swept.held_again, **of)
            failed.add(report.swept.failed, **of)
    return [planned, planned_bytes, removed, removed_bytes, gone, held, failed, seconds]


def _of_ends(repository: Repository, exit_codes: Mapping[str, int]) -> list[Metric]:
    code = Metric("desilt_exit_code", "How the last command of a job ended: 0 done, 3 in part, 10 refused, 11 locked.")
    ended = Metric("desilt_ended_timestamp_seconds", "When that was.")
    for job, one in exit_codes.items():
        code.add(one, repository=repository.name, job=job)
        ended.add(repository.clock().timestamp(), repository=repository.name, job=job)
    return [code, ended]


def _of_records(repository: Repository) -> list[Metric]:
    with repository.records.read() as tx:
        rows = ledger.every(tx, repository.uid)
        trash = tombstones.total_in(tx, repository.uid, State.TRASHED)
    last: dict[str, datetime] = {}
    for row in rows:  # the newest first
        if row.state is RunState.SWEPT and row.ended_at is not None:
            last.setdefault(row.job, row.ended_at)
    success = Metric("desilt_last_success_timestamp_seconds", "When a run of a job last ended with nothing left to do.")
    for job, at in sorted(last.items()):
        success.add(at.timestamp(), repository=repository.name, job=job)
    unfinished = [row.started_at for row in rows if row.state is RunState.SWEEPING]
    age = (repository.clock() - min(unfinished)).total_seconds() if unfinished else 0.0
    oldest = Metric(
        "desilt_oldest_unfinished_run_seconds", "The age of the oldest run that was cut off; 0 if none was."
    )
    oldest.add(age, repository=repository.name)
    objects = Metric("desilt_trash_objects", "Objects in the trash.")
    objects.add(trash[0], repository=repository.name)
    volume = Metric("desilt_trash_bytes", "Bytes in the trash.")
    volume.add(trash[1], repository=repository.name)
    return [success, oldest, objects, volume, *_of_marks(repository), *_of_discards(repository)]


def _of_discards(repository: Repository) -> list[Metric]:
    if repository.hard_delete is None:
        return []
    found, name = repository.hard_delete.discards(), repository.name
    objects = Metric("desilt_discarded_objects", "Objects that hard delete has condemned, by how far they have come.")
    volume = Metric("desilt_discarded_bytes", "Their bytes.")
    for state, count, size in (
        ("waiting", found.waiting, found.waiting_bytes),
        ("claimed", found.claimed, found.claimed_bytes),
    ):
        objects.add(count, repository=name, state=state)
        volume.add(size, repository=name, state=state)
    due = Metric("desilt_discarded_due_objects", "Of those, objects that a worker may remove now.")
    due.add(found.due, repository=name)
    age = (repository.clock() - found.oldest).total_seconds() if found.oldest else 0.0
    oldest = Metric("desilt_oldest_discard_seconds", "How long ago the oldest of them was condemned; 0 if none.")
    oldest.add(age, repository=name)
    watched = Metric("desilt_fresh_objects", "Staged uploads, never committed, that hard delete watches.")
    watched.add(found.fresh, repository=name)
    return [objects, volume, due, oldest, watched]


def _of_marks(repository: Repository) -> list[Metric]:
    with repository.records.read() as tx:
        found = marks.counted(tx, repository.uid)
    objects = Metric("desilt_marked_objects", "Objects that retention has marked, by what became of them.")
    volume = Metric("desilt_marked_bytes", "Their bytes.")
    for one in found:
        objects.add(one.objects, repository=repository.name, state=one.state)
        volume.add(one.bytes, repository=repository.name, state=one.state)
    waiting = [one.oldest for one in found if one.state in WAITING]
    age = (repository.clock() - min(waiting)).total_seconds() if waiting else 0.0
    oldest = Metric("desilt_oldest_mark_seconds", "The age of the oldest mark whose object is still there; 0 if none.")
    oldest.add(age, repository=repository.name)
    return [objects, volume, oldest]
