"""What two plans of a dry run would both take, counted once."""

from dataclasses import dataclass

from desilt.columns.files import HeldFile, put_addresses
from desilt.executors.executor import Executor
from desilt.jobs.expire.freed import freed
from desilt.objects import open_store
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs import plan_files
from desilt.runs.folder import Folder
from desilt.runs.history import FILE as HISTORY
from desilt.runs.history import GONE, read_change
from desilt.runs.report import Amount, Report
from desilt.runs.steps import PlanFile


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """A file of a plan, to be made a set of addresses."""

    store: str
    file: PlanFile
    target: str


def freed_besides(repository: Repository, executor: Executor, expired: Report, taken: Report) -> Amount:
    """What a collection frees after an expiration, but for what another plan takes before it."""
    source = repository.source(executor)
    staged = source.staged_pointers()  # before commits: an entry only ever moves from the one to the other
    seen = source.snapshot(repository.clock())
    change = read_change(_folder(repository, expired.run).get_text(HISTORY))
    abandoned = {dot.id: dot.by for dot in change.dots if dot.fate in GONE and dot.id in seen.commits}
    gone = going(repository, executor, taken.run)
    return freed(repository, executor, source, seen, staged, abandoned, also_gone=gone).total


def going(repository: Repository, executor: Executor, run_id: str) -> list[HeldFile]:
    """The addresses of a plan, as sets."""
    folder = _folder(repository, run_id)
    made = plans.read(folder, repository.secret)
    asked = [
        PlannedRows(repository.store.uri, file, f"{folder.root}going/{number:05d}.parquet")
        for number, file in enumerate(made.files)
        if file.rows
    ]
    return executor(write, asked, rows=made.removes.objects)


def write(one: PlannedRows) -> HeldFile:
    """On an executor: one file."""
    store = open_store(one.store)
    return put_addresses(store, one.target, plan_files.read(store, one.file)["address"].to_pylist())


def _folder(repository: Repository, run_id: str) -> Folder:
    return Folder(repository.store, repository.prefix, folders.find(repository.store, repository.prefix, run_id))
