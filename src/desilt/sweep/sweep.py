"""A sweep under way: what its steps are given."""

from dataclasses import dataclass

from desilt.errors import BadRequest
from desilt.executors.executor import Executor
from desilt.records.locks import Lock
from desilt.repository.editor import HistoryEditor
from desilt.repository.protocol import Repository
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of


@dataclass(frozen=True, slots=True)
class Sweep:
    """A plan, the right to carry it out, and who does the work."""

    repository: Repository
    plan: Plan
    lock: Lock
    executor: Executor
    tables: bool = False  # whether its job may remove ranges and metaranges
    per_second: int | None = None  # how many objects may go in a second, whoever deletes them; None: as many as can

    @property
    def folder(self) -> Folder:
        return Folder(self.repository.store, self.repository.prefix, run_of(self.plan))


def editor_of(sweep: Sweep) -> HistoryEditor:
    """Who changes history here."""
    if sweep.repository.editor is None:
        raise BadRequest(f"{sweep.repository.name!r} is of a kind whose history cannot be edited; choose another job")
    return sweep.repository.editor
