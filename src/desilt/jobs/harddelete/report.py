"""What a worker of hard delete removed: in figures, and as the pages of its run."""

from dataclasses import dataclass, field, replace

import pyarrow as pa

from desilt.domain.run import Run
from desilt.errors import span
from desilt.jobs.report import branch_name, group_names
from desilt.objects.store import Result
from desilt.records.ledger import BatchRow
from desilt.render import report as page
from desilt.render.report import Removed
from desilt.repository.hard_delete import GRACE
from desilt.repository.protocol import Repository
from desilt.runs.folder import Folder
from desilt.runs.known import outcome
from desilt.runs.report import Amount, Report, of_run
from desilt.sweep.outcome import read_outcome

LISTED = 5_000  # objects that a page names


@dataclass(slots=True)
class RemovedSoFar:
    """What was asked for so far, by the branch it was uploaded to and by what dropped it; and some of it."""

    amounts: dict[tuple[str, str], Amount] = field(default_factory=dict)
    some: list[Removed] = field(default_factory=list)  # of branches by their uids

    def add(self, repository: Repository, folder: Folder, done: BatchRow) -> None:
        rows: pa.Table = read_outcome(repository.store, folder.outcome + done.file)
        for row in rows.to_pylist():
            why = row["detail"] if row["result"] != Result.FAILED else f"failed: {row['detail']}"
            key = repository.layout.group_of(row["address"]), why
            self.amounts[key] = self.amounts.get(key, Amount()) + Amount(1, row["size_bytes"])
            if len(self.some) < LISTED:
                self.some.append(Removed(row["address"], row["size_bytes"], row["modified_at"], key[0], why, ""))


def publish(repository: Repository, run: Run, tally: RemovedSoFar, seconds: float) -> Report:
    """The report of a run so far, written into its folder as JSON and as a page."""
    hard_delete = repository.hard_delete
    assert hard_delete is not None
    names, found, setting = group_names(repository), hard_delete.discards(), hard_delete.setting()
    remove: dict[str, dict[str, Amount]] = {}
    for (group, why), amount in sorted(tally.amounts.items()):
        remove.setdefault(branch_name(names, group), {})[why] = amount
    went = sum(tally.amounts.values(), Amount())
    grace = setting.grace if setting else GRACE
    report = Report(
        **of_run(run),
        repository=repository.name,
        cutoff=(repository.clock() - grace).isoformat(),
        remove=remove,
        keep={},
        prefixes={},
        inputs={"waiting": found.waiting, "claimed": found.claimed, "fresh": found.fresh},
        seconds={"remove": round(seconds, 3)},
        stored=went,
        argument=repository.argument,
        notes=(f"They were never committed, and nothing had pointed to them for {span(grace)}.",),
        swept=outcome(repository, run.id),
        place="in one process",
    )
    folder = Folder(repository.store, repository.prefix, run)
    rows = (replace(one, branch=branch_name(names, one.branch)) for one in tally.some)
    folder.put_text("report.html", page.render(report, page.page_list(rows, LISTED)))
    folder.put_text("report.json", report.to_json())
    return report
