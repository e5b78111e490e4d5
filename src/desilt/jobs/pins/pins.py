"""What keeps the bytes: the branches, tags, holds and staging areas behind every object.

An object that only one of them points to goes when that one goes; what several
point to goes when all of them went. Nothing is removed, no lock is taken, and
nothing is left in the repository but caches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.columns.hashing import address_hash
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.columns.pins import POINTERS, in_words
from desilt.domain.potential import reach
from desilt.errors import NotReadBack, Unreadable
from desilt.executors.executor import Executor
from desilt.inventory.listing import stored_at
from desilt.jobs.job import Stages
from desilt.jobs.lifecycle.replay import ground, reaching
from desilt.jobs.pins.kernel import PinCounts, PinJudge
from desilt.jobs.removed import distrust, removed
from desilt.records import removals as tombstones
from desilt.records.holds import Hold, HoldKind
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Pointers
from desilt.runs.pins import Pin, PinGroup, Pins
from desilt.runs.report import Amount

LIMIT = 20  # groups
AT_ONCE = 10_000  # sets whose bits are looked at


def pins(repository: Repository, executor: Executor, *, limit: int = LIMIT) -> Pins:
    """What each pin keeps alone and at all, and the ``limit`` biggest groups that keep something together."""
    source, now, stage = repository.source(executor), repository.clock(), Stages(executor.watch)
    with stage("staged"):  # before commits: an entry only ever moves from the one to the other
        staged = source.staged_pointers()
    with stage("commits"):
        history = source.snapshot(now)
        known = numbered(history, staged)
        commits = reaching(ground(source, history), history.commits, known.bits)
    with stage("objects"):
        gone = tuple(removed(executor, repository))
        first = len(commits.sets)  # behind the sets of commits, a set for each of the other pins
        sets = [*commits.sets, *(1 << number for number in range(known.tips, len(known.names)))]
        prefixes = tuple((hold.value, first + place) for place, hold in enumerate(known.prefixes))
        others = pointers(repository, known, staged, first + len(prefixes))
        judge = PinJudge(
            commits.files,
            prefixes,
            others,
            in_words(sets, len(known.names)),
            gone,
            restored(repository),
        )
        answer = judge_buckets(executor, repository.store.uri, judge, weigh=counted_objects)
    if isinstance(answer, DamagedFiles):
        source.distrust(sorted({held.key for held, _ in commits.files} & answer.names))
        distrust(repository.store, repository.prefix, answer.names)
        raise NotReadBack(min(answer.names))
    amounts = {bits: Amount(objects, answer.bytes[bits]) for bits, objects in answer.objects.items()}
    return told(repository.name, now, amounts, known.names, limit=limit)


@dataclass(frozen=True, slots=True)
class Numbered:
    """Every pin has a number, and is a bit: first what reaches commits, then holds on paths, on objects, then areas."""

    names: list[str]
    tips: int  # how many of them reach commits
    bits: Mapping[str, int]  # for each commit, what reaches it
    prefixes: list[Hold]
    addresses: list[Hold]


def numbered(history: Snapshot, staged: Pointers) -> Numbered:
    """The pins of a history; a tag and a hold reach what a branch would in their place."""
    of = {kind: history.held(kind) for kind in HoldKind}
    if missing := [hold for hold in of[HoldKind.REF] if hold.value not in history.commits]:
        said = f"hold {missing[0].id} names commit {missing[0].value}, which is missing from the database"
        raise Unreadable(f"{said}; see `desilt fsck`")
    tips = {f"branch {branch.name}": branch.head for branch in history.branches}
    tips |= {f"tag {tag.name}": tag.target for tag in history.tags}
    tips |= {_called(hold): hold.value for hold in of[HoldKind.REF]}
    bits = reach(history.parents, tips)
    names = sorted(tips)  # as their bits are
    names += [_called(hold) for hold in of[HoldKind.PREFIX] + of[HoldKind.ADDRESS]]
    names += [f"staged on {name}" for name in staged.names]
    return Numbered(names, len(tips), bits, of[HoldKind.PREFIX], of[HoldKind.ADDRESS])


def _called(hold: Hold) -> str:
    return f"hold {hold.id} ({hold.reason})"


def pointers(repository: Repository, known: Numbered, staged: Pointers, first: int) -> pa.Table:
    """What no commit says, by places from ``first`` on: objects that holds name, if they are there; what is staged."""
    found = [POINTERS.empty_table()]
    for place, hold in enumerate(known.addresses, first):
        if (listed := stored_at(repository.store, repository.prefix + hold.value)) is not None:
            hashes = address_hash(pa.array([hold.value], pa.string()))
            found.append(pa.table([hashes, pa.array([place]), listed["size_bytes"]], schema=POINTERS))
    moved = staged.rows["place"].to_numpy() + first + len(known.addresses)
    found.append(staged.rows.set_column(1, POINTERS.field("place"), pa.array(moved)))
    return pa.concat_tables(found).combine_chunks()


def restored(repository: Repository) -> npt.NDArray[np.uint64]:
    """Of what runs removed, the hashes of what may be there again."""
    with repository.records.read() as tx:
        back = tombstones.unsettled(tx, repository.uid)
    return np.sort(address_hash(pa.array(back, pa.string())))


def counted_objects(answer: PinCounts) -> int:
    return answer.objects.total()


def told(name: str, at: datetime, amounts: Mapping[int, Amount], names: Sequence[str], *, limit: int) -> Pins:
    """What each set of pins keeps, as people ask for it."""
    found = [
        Pin(pin, amounts.get(1 << number, Amount()), reached)
        for number, (pin, reached) in enumerate(zip(names, by_pin(amounts, len(names)), strict=True))
    ]
    found.sort(key=lambda pin: (-pin.alone.bytes, -pin.alone.objects, -pin.reaches.bytes, pin.name))
    shared = [bits for bits in amounts if bits.bit_count() > 1]
    shared.sort(key=lambda bits: (-amounts[bits].bytes, -amounts[bits].objects, bits))
    groups = [PinGroup(named(bits, names), amounts[bits]) for bits in shared[:limit]]
    left = [amounts[bits] for bits in shared[limit:]]
    total = sum(amounts.values(), Amount())
    nothing = amounts.get(0, Amount())
    return Pins(name, at, total, nothing, tuple(found), tuple(groups), len(left), sum(left, Amount()))


def named(bits: int, names: Sequence[str]) -> tuple[str, ...]:
    """The names of some pins, in the order of their numbers."""
    return tuple(name for number, name in enumerate(names) if bits >> number & 1)


def by_pin(amounts: Mapping[int, Amount], pins: int) -> list[Amount]:
    """What each pin keeps at all. There may be as many sets as pins times commits: they are added up as columns."""
    width, sets, sums = max(1, -(-pins // 8)), list(amounts), np.zeros((2, pins), np.int64)
    for at in range(0, len(sets), AT_ONCE):
        some = sets[at : at + AT_ONCE]
        data = np.frombuffer(b"".join(bits.to_bytes(width, "little") for bits in some), np.uint8)
        flags = np.unpackbits(data.reshape(len(some), width), axis=1, count=pins, bitorder="little")
        rows = [[amounts[bits].objects for bits in some], [amounts[bits].bytes for bits in some]]
        sums += np.array(rows, np.int64) @ flags.astype(np.int64)
    return [Amount(objects, size) for objects, size in sums.T.tolist()]
