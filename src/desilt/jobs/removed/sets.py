"""Sets of addresses that runs have removed: files, and a word beside them that says which runs they are of.

A set is of one run, or of several (:mod:`desilt.jobs.removed.growth`), and is never changed. Its
word is written after its files, is named by the hash of what it says, and is believed
while it is what its name says and its files are there. A set counts only where all of its
runs are asked for. What a larger one tells is not asked of others: by their names alone
it is known of which run they are, or that they were replaced.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from desilt.columns.files import HeldFile, as_json, from_json
from desilt.domain.run import ID, is_run_id
from desilt.errors import NotFound
from desilt.objects.store import ObjectStore

FOLDER = "_desilt/removed/"
NAME = re.compile(
    rf"(?:(?P<run>{ID.pattern})|(?P<count>\d+)-runs)(?:\.(?P<digest>[0-9a-f]{{64}})\.json|-[0-9a-f-]+\.parquet)"
)


@dataclass(frozen=True, slots=True)
class RemovedSet:
    """Addresses that some runs have removed, all of theirs and no others."""

    word: str  # its key
    runs: frozenset[str]
    files: tuple[HeldFile, ...]
    replaces: frozenset[str] = frozenset()  # words and files of other sets of several runs, all of which are of its own

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def keys(self) -> frozenset[str]:
        """Of its word and its files."""
        return frozenset([self.word, *(file.key for file in self.files)])


@dataclass(frozen=True, slots=True)
class Sets:
    """What there is, for those who ask for some runs."""

    used: tuple[RemovedSet, ...]  # that together tell as much as there is of these runs
    idle: tuple[RemovedSet, ...] = ()  # of several runs, all of which the used ones tell of
    barred: tuple[RemovedSet, ...] = ()  # of several runs, one of which is not asked for

    @property
    def runs(self) -> frozenset[str]:
        return frozenset().union(*(one.runs for one in self.used))


def new_name(folder: str, runs: AbstractSet[str], number: int) -> str:
    """Of a file; another one for each attempt: what somebody else wrote stays what it was."""
    return f"{folder}{_called(runs)}-{number:04d}-{secrets.token_hex(4)}.parquet"


def say(
    store: ObjectStore,
    folder: str,
    runs: AbstractSet[str],
    files: Sequence[HeldFile],
    replaces: AbstractSet[str] = frozenset(),
) -> RemovedSet:
    """Write the word that a set is there."""
    listed = [as_json(file) for file in files]
    several = {"runs": sorted(runs), "files": listed, "replaces": sorted(replaces)}
    said = json.dumps(listed if len(runs) == 1 else several).encode()
    word = f"{folder}{_called(runs)}.{hashlib.sha256(said).hexdigest()}.json"
    store.put(word, [said])
    return RemovedSet(word, frozenset(runs), tuple(files), frozenset(replaces))


def listed(store: ObjectStore, folder: str) -> frozenset[str]:
    """The keys below ``folder``."""
    return frozenset(key for batch in store.list(folder) for key in batch["key"].to_pylist())


def sound(store: ObjectStore, folder: str, there: AbstractSet[str], wanted: AbstractSet[str]) -> Sets:
    """Which sets, of those whose keys are ``there``, tell of the runs that are ``wanted``."""
    used: list[RemovedSet] = []
    idle: list[RemovedSet] = []
    barred: list[RemovedSet] = []
    covered, replaced = set[str](), set[str]()
    for word in _of_several(folder, there):  # those of many runs first: they replace those of fewer
        said = read(store, word, there) if word not in replaced else None
        if said is None:
            continue
        if not said.runs <= wanted:
            barred.append(said)
            continue
        (idle if said.runs <= covered else used).append(said)
        covered |= said.runs
        replaced |= said.replaces
    for word in sorted(there):
        match = _match(folder, word)
        if match and match["digest"] and match["run"] in wanted and match["run"] not in covered:
            said = read(store, word, there)
            if said is not None:
                used.append(said)
                covered |= said.runs
    return Sets(tuple(used), tuple(idle), tuple(barred))


def needless(folder: str, there: AbstractSet[str], sets: Sets) -> Iterator[str]:
    """Those of the keys ``there`` that nobody asks for: ``sets`` tell the same.

    What is of a run that no used set of several tells of stays, and so does what may be asked for again.
    """
    several = [one for one in (*sets.used, *sets.barred) if len(one.runs) > 1]
    named = frozenset().union(*(one.keys for one in several))
    covered = frozenset().union(*(one.runs for one in sets.used if len(one.runs) > 1))
    for key in sorted(there):
        match = _match(folder, key)
        if match and (match["run"] in covered if match["run"] else key not in named):
            yield key


def words(folder: str, there: Iterable[str]) -> list[str]:
    """Those of some keys that are called as words are."""
    return [key for key in there if (match := _match(folder, key)) and match["digest"]]


def read(store: ObjectStore, word: str, there: AbstractSet[str]) -> RemovedSet | None:
    """What a word says; None if it is damaged, or was just tidied up, or one of its files is not ``there``."""
    match = _match(word[: word.rfind("/") + 1], word)
    assert match is not None
    try:
        data = store.get(word)
        if hashlib.sha256(data).hexdigest() != match["digest"]:
            return None
        said = json.loads(data)
        if match["run"]:
            said = {"runs": [match["run"]], "files": said, "replaces": []}
        files = tuple(from_json(facts) for facts in said["files"])
        found = RemovedSet(word, frozenset(said["runs"]), files, frozenset(said["replaces"]))
    except (NotFound, ValueError, KeyError, TypeError):
        return None
    of_several = match["run"] or len(found.runs) == int(match["count"])
    return found if of_several and all(map(is_run_id, found.runs)) and found.keys <= there else None


def _called(runs: AbstractSet[str]) -> str:
    return f"{len(runs)}-runs" if len(runs) > 1 else min(runs)


def _match(folder: str, key: str) -> re.Match[str] | None:
    return NAME.fullmatch(key.removeprefix(folder))


def _of_several(folder: str, there: AbstractSet[str]) -> list[str]:
    """Words of sets of several runs, those of most first."""
    counts = {word: int(match["count"] or 0) for word in words(folder, there) if (match := _match(folder, word))}
    return sorted((word for word, count in counts.items() if count), key=lambda word: (-counts[word], word))
