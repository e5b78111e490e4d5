"""Icechunk repositories, collected by desilt and by their own library; copies of them, and what is left in each."""

import hashlib
import subprocess
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from desilt.clock import system_clock
from desilt.executors.executor import HERE
from desilt.icechunk.format import manifest, states
from desilt.icechunk.format.ids import names_of
from desilt.icechunk.history import history
from desilt.icechunk.opening import open_repository
from desilt.jobs.collect.job import job
from desilt.jobs.runner import plan, run, sweep
from desilt.objects import open_store
from desilt.records.opening import open_records
from desilt.runs import plan_files
from desilt.runs.folder import Folder, find
from desilt.runs.plan import read
from desilt.sweep.limits import Limits
from desilt.testing.faults import SteppedDatabase, stepped
from icechunk_world import icechunk, zarr

ALL = Limits(max_share=1, confirm=True)
NOW = timedelta(0)  # how old something must be, where that is nothing to be looked at
FOLDERS = ("snapshots", "manifests", "transactions", "chunks")


@contextmanager
def desilt_on(root, *, records=None, store=None, steps=None, clock=system_clock):
    """The repository at ``root`` as desilt opens it; its records lie beside it. With ``steps``, it may die at one."""
    found, store = open_records(f"sqlite://{records or Path(f'{root}.db')}"), store or open_store(str(root))
    if steps is not None:
        found, store = SteppedDatabase(found, steps), stepped(store, steps)
    opened = open_repository(store, found, clock=clock)
    try:
        yield opened
    finally:
        opened.records.close()


def asked(repository, **options):
    """What a collection is asked that leaves nothing alone for being young."""
    return job.asked(repository, **{"older_than": NOW, "unsafe": True, **options})


def planned(repository, **options):
    return plan(job, repository, HERE, asked(repository, **options), ALL)


def collected(repository, **options):
    """The report of a run, the last of them."""
    return run(job, repository, HERE, asked(repository, **options), ALL)[-1]


def swept(repository, run_id, limits=ALL):
    return sweep(repository, HERE, run_id, limits)


def plan_of(repository, run_id):
    found = find(repository.store, repository.prefix, run_id)
    return read(Folder(repository.store, repository.prefix, found), repository.secret)


def collected_by_library(root, *, older_than=None):
    """Its own collector on the repository at ``root``; all that is old goes, usually all."""
    repo = icechunk.Repository.open(icechunk.local_filesystem_storage(str(root)))
    repo.garbage_collect(older_than or datetime.now(UTC) + timedelta(seconds=1))


def copied(root, name):
    """Another one beside it, with the times of its files."""
    target = Path(root).parent / name
    subprocess.run(["cp", "-a", str(root), str(target)], check=True)
    return target


def files(root):
    """What lies in the folders that a collection is about."""
    return {folder: {path.name for path in (Path(root) / folder).glob("*")} for folder in FOLDERS}


def left_in(root):
    """All that the library shows of a repository: refs, their ancestry, and each array's bytes."""
    repo = icechunk.Repository.open(icechunk.local_filesystem_storage(str(root)))
    refs = {("branch", name): repo.lookup_branch(name) for name in repo.list_branches()}
    refs |= {("tag", name): repo.lookup_tag(name) for name in repo.list_tags()}
    lines = {ref: [one.id for one in repo.ancestry(snapshot_id=head)] for ref, head in refs.items()}
    return lines, {name: arrays(repo, name) for line in lines.values() for name in line}


def arrays(repo, snapshot):
    """A hash of each array of a snapshot; of virtual chunks the library reads nothing here, so these are left out."""
    try:
        group = zarr.open_group(repo.readonly_session(snapshot_id=snapshot).store, mode="r")
    except (zarr.errors.GroupNotFoundError, FileNotFoundError):  # the first snapshot has none
        return {}
    found = {name: array for name, array in group.arrays() if not name.startswith("v")}
    return {
        name: hashlib.sha256(np.ascontiguousarray(array[...]).tobytes()).hexdigest() for name, array in found.items()
    }


def naive(root):
    """What may go, in plain sets: everything that no ref leads to. Nothing here knows of caches or of columns."""
    store = open_store(str(root))
    found = history(store)
    live = found.seen.below(found.seen.tips)
    listed = {one for name in live for one in states.fetch(store, name).manifests}
    chunks = {name for one in listed for name in names_of(manifest.native_ids(manifest.fetch(store, one))).to_pylist()}
    logs = live | {log for name in live for log in found.pruned.get(name, ())}
    there = files(root)
    return {
        "snapshots": there["snapshots"] - live,
        "manifests": there["manifests"] - {one.id for one in listed},
        "transactions": there["transactions"] - logs,
        "chunks": there["chunks"] - chunks,
    }


def rows_of(repository, run_id):
    """All that a plan names."""
    store = repository.store
    tables = [plan_files.read(store, one, 0, one.rows) for one in plan_of(repository, run_id).files]
    return {address for table in tables for address in table["address"].to_pylist()}
