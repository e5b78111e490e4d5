"""What desilt itself has written and needs no longer, found."""

import json
from collections.abc import Iterator, Set
from datetime import datetime, timedelta

from desilt.cache.known import read
from desilt.cache.metaranges import FOLDER as METARANGES
from desilt.cache.metaranges import kept
from desilt.cache.ranges import FOLDER as RANGES
from desilt.domain.run import BESIDE, FOLDER, Run, started
from desilt.errors import NotFound
from desilt.jobs.removed.past import runs_over
from desilt.jobs.removed.sets import FOLDER as REMOVED
from desilt.jobs.removed.sets import needless, sound
from desilt.repository.protocol import Repository
from desilt.runs.folder import runs_of
from desilt.runs.report import Amount
from desilt.runs.steps import OwnFiles
from desilt.sstable.ranges import STAGING
from desilt.sweep.tidy import OWN, needed

Sized = dict[str, int]  # keys below the repository's prefix, and their sizes


def found(
    repository: Repository, run: Run, live: Set[str], before: datetime, keep_runs: timedelta
) -> tuple[OwnFiles, ...]:
    """By kind: the keys that can go, how many files they are, and how many bytes."""
    folders = old_runs(repository, run, run.now - keep_runs)
    kinds = {
        "old runs": (list(folders), sum(folders.values(), Amount())),
        "range cache": _together(unused_ranges(repository, live, before)),
        "sets of what was removed": _together(replaced_sets(repository, before)),
        "metarange cache": _together(unused_metaranges(repository, live, before)),
        "staging manifests": _together(_listed(repository, STAGING, before)),
    }
    return tuple(
        OwnFiles(what, tuple(keys), amount.objects, amount.bytes) for what, (keys, amount) in kinds.items() if keys
    )


def old_runs(repository: Repository, run: Run, before: datetime) -> dict[str, Amount]:
    """The folders of runs from before ``before`` that nobody needs, and what is in them; each job keeps its newest."""
    old, seen = dict[str, str](), set[str]()
    for job, run_id in [*runs_of(repository.store, repository.prefix), *_beside(repository)]:
        folder = f"{FOLDER}{job}/{run_id}/"
        if started(run_id) < before and job in seen and OWN.fullmatch(folder):
            old[folder] = run_id
        seen.add(job)
    still = needed(repository, list(old.values())) | {run.id}
    folders: dict[str, Amount] = {}
    for folder in [folder for folder, run_id in old.items() if run_id not in still]:
        sizes = _listed(repository, folder, None).values()
        folders[folder] = Amount(len(sizes), sum(sizes))
    return folders


def unused_ranges(repository: Repository, live: Set[str], before: datetime) -> Sized:
    """Cache files that nobody reads any more, all from before ``before``.

    None of their ranges any commit has, another one has replaced them, or they are of another version, or damaged. A
    word whose file is younger, or not there, is left to those who may be writing it.
    """
    sizes = _listed(repository, RANGES, before)
    used, replaced = set(), set[str]()
    for key in sizes:
        if key.endswith(".json"):
            name = key.removesuffix(".json")
            size = sizes.get(f"{name}.parquet")
            said = read(repository.store, repository.prefix + key, size) if size is not None else None
            told = {owner.id for owner in said.owners} if said is not None else set()
            ranges = _ranges(repository, key) if size is None else told
            used |= {name} if ranges & live else set()
            if said is not None and name in used and said.dropped.isdisjoint(live):
                replaced |= {one.removeprefix(repository.prefix).removesuffix(".parquet") for one in said.replaces}
    return {key: size for key, size in sizes.items() if key.rpartition(".")[0] not in used - replaced}


def replaced_sets(repository: Repository, before: datetime) -> Sized:
    """Sets of what runs have removed that another one has replaced before ``before``; words first, then their files."""
    sizes, folder = _listed(repository, REMOVED, before), repository.prefix + REMOVED
    there = {repository.prefix + key for key in sizes}
    sets = sound(repository.store, folder, there, runs_over(repository).keys())
    going = sorted(needless(folder, there, sets), key=lambda key: not key.endswith(".json"))
    return {key: sizes[key] for key in (one.removeprefix(repository.prefix) for one in going)}


def unused_metaranges(repository: Repository, live: Set[str], before: datetime) -> Sized:
    """Those of no metarange that any commit has; and those of another version, or damaged, which nobody reads."""
    sizes, folder = _listed(repository, METARANGES, before), repository.prefix + METARANGES
    said = {key: kept(repository.store, folder, repository.prefix + key) for key in sizes}
    return {key: sizes[key] for key, lists in said.items() if lists is None or not lists.of.keys() & live}


def _beside(repository: Repository) -> Iterator[tuple[str, str]]:
    for name in BESIDE:
        yield from runs_of(repository.store, repository.prefix, job=name)


def _listed(repository: Repository, folder: str, before: datetime | None) -> Sized:
    """What is in a folder; with ``before``, from before it, and only what is called as desilt calls its files there."""
    return {
        name: row["size_bytes"]
        for batch in repository.store.list(repository.prefix + folder)
        for row in batch.to_pylist()
        if (name := row["key"].removeprefix(repository.prefix))
        and (before is None or (row["modified_at"] is not None and row["modified_at"] < before and OWN.fullmatch(name)))
    }


def _ranges(repository: Repository, word: str) -> set[str]:
    """The ranges that a word tells of; none, if it is damaged or just gone."""
    try:
        return {str(name) for name, _ in json.loads(repository.store.get(repository.prefix + word))["ranges"]}
    except (NotFound, ValueError, KeyError, TypeError):
        return set()


def _together(sizes: Sized) -> tuple[list[str], Amount]:
    return list(sizes), Amount(len(sizes), sum(sizes.values()))
