"""Condemned objects removed with every version that their bucket keeps of them, so that nothing is left to pay for.

An object goes by the ids of its versions, and no marker is written: for as long as any of them is there, listings show
it, as they show any object that could not be removed. The version that a read finds goes last, once all others of
its key have gone: what is left of an object that could not be removed, and may be restored, is never an older one.
Which versions go is on record before they do, so that a try that was cut off is counted with the one that goes on.
"""

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

import pyarrow as pa

from desilt.clock import ManualClock
from desilt.columns.schemas import MOMENT
from desilt.errors import BadRequest, StorageFailed
from desilt.objects.store import ObjectStore, Outcome, Result
from desilt.objects.versions import KeyVersions, ObjectVersions, Version, Versioning
from desilt.repository.gate import Batch, Safety
from desilt.repository.protocol import Repository
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.runs.report import Amount
from desilt.runs.steps import Action
from desilt.sweep import delete
from desilt.sweep.budget import Budget
from desilt.sweep.delete import Sure
from desilt.sweep.outcome import read_outcome, write_outcome

GOING = pa.schema(
    [
        ("key", pa.string()),
        ("id", pa.string()),
        ("size", pa.int64()),
        ("modified_at", MOMENT),
        ("is_marker", pa.bool_()),
    ]
)
"""One row per version that a batch is about to remove."""

NOTED = b"desilt.versions"  # under which the file of an outcome has what went with its objects


@dataclass(frozen=True, slots=True)
class PurgedVersions:
    """Versions of objects that a run removed."""

    versions: Amount = field(default_factory=Amount)  # gone, the current ones among them
    markers: int = 0  # gone: what hid a version
    left: Amount = field(default_factory=Amount)  # that were to go, and are there still or may be

    def __add__(self, other: "PurgedVersions") -> "PurgedVersions":
        return PurgedVersions(self.versions + other.versions, self.markers + other.markers, self.left + other.left)


def check(repository: Repository, action: Action) -> None:
    """Refuse to purge versions where there cannot be any, where nothing is condemned, and where we may not look."""
    if action is not Action.PURGE_VERSIONS:
        return
    versions = versions_of(repository.store)
    if repository.gate.safety is not Safety.ATOMIC:
        raise BadRequest(
            f"{repository.name!r} is of a kind that cannot condemn objects, and old versions are the last way back; "
            "do without --purge-versions, and leave them to a lifecycle rule of the bucket"
        )
    if versions.versioning() is not Versioning.OFF:
        (looked,) = versions.list_versions([f"{repository.prefix}_desilt/versions"])
        if looked.error:
            raise StorageFailed(f"{looked.error}; --purge-versions needs s3:ListBucketVersions, nothing was removed")


def versions_of(store: ObjectStore) -> ObjectVersions:
    if store.versions is None:
        raise BadRequest(f"{store.uri} is no bucket on S3, and has no versions to purge; leave out --purge-versions")
    return store.versions


def purging_of(repository: Repository, plan: Plan, batch: Batch) -> "Purging | None":
    """How a batch goes by versions; None where it does not, or where its bucket never had any."""
    if plan.action is not Action.PURGE_VERSIONS:
        return None
    store, versions = repository.store, versions_of(repository.store)
    if versions.versioning() is Versioning.OFF:
        return None
    folder = Folder(store, repository.prefix, run_of(plan))
    dated = not isinstance(repository.clock, ManualClock)  # else buckets and we do not mean the same by a date
    return Purging(store, versions, f"{folder.versions}{batch.number:08d}-", plan.started_at if dated else None)


@dataclass(slots=True)
class Purging:
    """The versions of one batch: those that were to go, by any try, and those that went."""

    store: ObjectStore
    versions: ObjectVersions
    place: str  # where it is written down which are to go
    before: datetime | None  # what is younger was not there when the plan was made; None: nobody can tell
    going: dict[tuple[str, str], Version] = field(default_factory=dict)
    gone: set[tuple[str, str]] = field(default_factory=set)

    def remove(self, keys: Sequence[str], *, sure: Sure, budget: Budget) -> list[Outcome]:
        """What came of each of ``keys``, in order: all of them condemned by this batch, and by nothing else."""
        self.going |= {(one.key, one.id): one for one in recorded(self.store, self.place)}
        found: dict[str, Outcome] = {}
        rest = list(dict.fromkeys(keys))
        for pause in (*delete.PAUSES, None):
            asked = {key for key, _ in self.going}
            outcomes = [one for some in budget.portions(rest) for one in self._tried(some, sure)]
            found |= {one.key: _ours(one) if one.key in asked else one for one in outcomes}
            rest = [one.key for one in outcomes if one.result is Result.FAILED]
            if not rest or pause is None:
                break
            delete.wait(pause, budget)
        asked = {key for key, _ in self.going}
        found |= {one.key: _ours(one) if one.key in asked else one for one in self._looked_at(rest, found, sure)}
        return [found[key] for key in keys]

    def figures(self) -> PurgedVersions:
        went = [one for name, one in self.going.items() if name in self.gone]
        left = [one for name, one in self.going.items() if name not in self.gone]
        return PurgedVersions(amount(went), sum(one.is_marker for one in went), amount(left))

    def _tried(self, keys: Sequence[str], sure: Sure) -> list[Outcome]:
        listed = self._listed(keys, sure)
        wrong = {one.key: why for one in listed if (why := one.error or self._objection(one))}
        going = [version for one in listed if one.key not in wrong for version in one.versions]
        self._record(going)
        wrong |= self._went([one for one in going if not one.is_latest], sure)
        wrong |= self._went([one for one in going if one.is_latest and one.key not in wrong], sure)
        return [Outcome(one.key, *_result(one, wrong.get(one.key, ""))) for one in listed]

    def _went(self, versions: Sequence[Version], sure: Sure) -> dict[str, str]:
        """Remove these; of which keys some could not be, and why."""
        wrong: dict[str, str] = {}
        for one in self.versions.remove_versions(versions, between=sure.check) if versions else []:
            if one.error:
                wrong[one.version.key] = f"of its versions, {one.version.id} could not be removed: {one.error}"
            else:
                self.gone.add((one.version.key, one.version.id))
        return wrong

    def _listed(self, keys: Sequence[str], sure: Sure) -> list[KeyVersions]:
        """What there is of each; of what was to go, the rest went by a try whose answer nobody heard."""
        listed = self.versions.list_versions(keys, between=sure.check)
        there = {(version.key, version.id) for one in listed for version in one.versions}
        told = {one.key for one in listed if not one.error}
        self.gone |= {name for name in self.going if name[0] in told and name not in there}
        return listed

    def _objection(self, one: KeyVersions) -> str:
        """Why nothing of a key may go: it came back after it was judged, and no law says how; or none is the last."""
        if one.versions and sum(version.is_latest for version in one.versions) != 1:
            return "the store does not say which version a read finds: all of it was left alone"
        young = [version for version in one.versions if not version.is_marker and self._is_young(version)]
        return f"version {young[0].id} was written after the plan was made: all of it was left alone" if young else ""

    def _is_young(self, version: Version) -> bool:
        return self.before is not None and version.modified_at >= self.before

    def _record(self, going: Sequence[Version]) -> None:
        new = {name: one for one in going if (name := (one.key, one.id)) not in self.going}
        if new:
            columns = [[getattr(one, name) for one in new.values()] for name in GOING.names]
            write_outcome(self.store, f"{self.place}{secrets.token_hex(4)}.parquet", pa.table(columns, schema=GOING))
            self.going |= new

    def _looked_at(self, failed: Sequence[str], found: dict[str, Outcome], sure: Sure) -> Iterator[Outcome]:
        """After the last failure: gone after all, or still there. A request may be lost, or its answer."""
        for one in self._listed(failed, sure) if failed else []:
            yield found[one.key] if one.error or one.versions else Outcome(one.key, Result.GONE)


def recorded(store: ObjectStore, place: str) -> list[Version]:
    """What earlier tries of a batch were about to remove."""
    keys = [key for listed in store.list(place) for key in listed["key"].to_pylist()]
    return [Version(**row) for key in keys for row in read_outcome(store, key).to_pylist()]


def noted(rows: pa.Table, purging: Purging | None) -> pa.Table:
    """The outcome of a batch, with what went besides."""
    if purging is None:
        return rows
    return rows.replace_schema_metadata({NOTED: json.dumps(asdict(purging.figures())).encode()})


def read_noted(store: ObjectStore, key: str) -> PurgedVersions:
    """What went besides, with the batch whose outcome is in the file ``key``."""
    said = (read_outcome(store, key).schema.metadata or {}).get(NOTED)
    if said is None:
        return PurgedVersions()
    facts = json.loads(said)
    return PurgedVersions(Amount(**facts["versions"]), facts["markers"], Amount(**facts["left"]))


def amount(versions: Sequence[Version]) -> Amount:
    """Without markers, which have no bytes."""
    some = [one.size for one in versions if not one.is_marker]
    return Amount(len(some), sum(some))


def _result(one: KeyVersions, wrong: str) -> tuple[Result, str]:
    if wrong:
        return Result.FAILED, wrong
    return (Result.REMOVED if one.versions else Result.GONE), ""


def _ours(again: Outcome) -> Outcome:
    """Of a key that was asked for before, and failed: what is gone by now went by that."""
    return Outcome(again.key, Result.REMOVED) if again.result is Result.GONE else again
