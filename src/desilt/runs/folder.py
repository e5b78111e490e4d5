"""What a run leaves in its repository's storage, and the only place that knows where.

_desilt/runs/<job>/<run id>/
    inputs/       what was held and what was listed, as it was read
    plan/         every object that goes
    plan.json     what the plan was made from; written last: without it there is no plan
    pending/      what the next run looks at again
    swept.json    that the guard let it pass
    versions/     where versions go with their objects: which, before they do
    outcome/      what became of every object that was to go
    report.json   the figures
    report.html   the same to look at
"""

import json
from collections.abc import Mapping
from typing import Any

from desilt.domain.run import BESIDE, FOLDER, Run, is_run_id, started
from desilt.errors import BadRequest, DamagedRun, NotFound
from desilt.objects.store import ObjectStore

LAST = "last"
TRASH = "_desilt/trash/"


class Folder:
    """The folder of one run."""

    def __init__(self, store: ObjectStore, prefix: str, run: Run) -> None:
        self.store, self.prefix, self.run = store, prefix, run
        self.root = prefix + run.folder

    @property
    def plan(self) -> str:
        return f"{self.root}plan/"

    @property
    def pending(self) -> str:
        return f"{self.root}pending/"

    @property
    def outcome(self) -> str:
        return f"{self.root}outcome/"

    @property
    def versions(self) -> str:
        """Versions of objects that are about to be removed."""
        return f"{self.root}versions/"

    @property
    def claimed(self) -> str:
        """What a worker of hard delete was about to remove."""
        return f"{self.root}claimed/"

    @property
    def ranges(self) -> str:
        """The names of the ranges that were judged."""
        return f"{self.root}inputs/ranges.txt"

    @property
    def trash(self) -> str:
        """Where the run moves objects to, if it does not delete them."""
        return trash_of(self.prefix, self.run.id)

    def put_json(self, name: str, value: Mapping[str, Any]) -> None:
        self.put_text(name, json.dumps(value, indent=1) + "\n")

    def put_text(self, name: str, text: str) -> None:
        self.store.put(self.root + name, [text.encode()])

    def get_text(self, name: str) -> str:
        """``name`` of this run; :class:`NotFound` if it wrote none."""
        try:
            return self.store.get(self.root + name).decode()
        except UnicodeDecodeError:
            raise DamagedRun(self.root + name, "is not what was written") from None

    def has(self, name: str) -> bool:
        try:
            self.store.head(self.root + name)
        except NotFound:
            return False
        return True


def trash_of(prefix: str, run_id: str) -> str:
    return f"{prefix}{TRASH}{run_id}/"


def runs_of(store: ObjectStore, prefix: str, *, job: str | None = None) -> list[tuple[str, str]]:
    """The job and id of every run whose folder is there, newest first; what is beside jobs only if it is asked for."""
    jobs = [job] if job else [_last(folder) for folder in store.folders(prefix + FOLDER)]
    jobs = [name for name in jobs if job or name not in BESIDE]
    found = [(_last(folder), name) for name in jobs for folder in store.folders(f"{prefix}{FOLDER}{name}/")]
    return [(name, run_id) for run_id, name in sorted(found) if is_run_id(run_id)]


def newest(store: ObjectStore, prefix: str) -> str | None:
    """The id of the last run of all, whatever is beside jobs among them: the next one sorts before it."""
    every = [*runs_of(store, prefix), *(one for name in BESIDE for one in runs_of(store, prefix, job=name))]
    return min((run_id for _, run_id in every), default=None)


def find(store: ObjectStore, prefix: str, wanted: str, *, beside: bool = False) -> Run:
    """The run whose id is ``wanted``, or begins so, or is the last one; its moment is its plan's to tell.

    With ``beside``, simulations and upkeeps too.
    """
    if not wanted:
        raise BadRequest("the id of a run is empty; write it, or the beginning of it, or `last`")
    found = runs_of(store, prefix)
    if beside:
        more = [one for name in BESIDE for one in runs_of(store, prefix, job=name)]
        found = sorted([*found, *more], key=lambda one: one[1])
    if wanted != LAST:
        found = [(job, run_id) for job, run_id in found if run_id.startswith(wanted)]
    if not found:
        raise NotFound("run", wanted, "see `desilt runs`")
    if len(found) > 1 and wanted != LAST:
        raise BadRequest(f"{len(found)} runs begin with {wanted!r}; write more of the id, see `desilt runs`")
    job, run_id = found[0]
    return Run(run_id, job, started(run_id))


def _last(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2]
