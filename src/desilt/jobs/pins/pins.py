"""What keeps the bytes: the branches, tags, holds and staging areas behind every object.

An object that only one of them points to goes when that one goes; what several
point to goes when all of them went. Nothing is removed, no lock is taken, and
nothing is left in the repository but caches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from desilt.domain.potential import reach
from desilt.errors import Unreadable
from desilt.executors.executor import Executor
from desilt.jobs.job import Stages
from desilt.jobs.pins.weigh import Besides, weigh
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
    with stage("objects"):
        others = iter(1 << number for number in range(known.tips, len(known.names)))
        besides = Besides(
            [(hold.value, next(others)) for hold in known.prefixes],
            [(hold.value, next(others)) for hold in known.addresses],
            staged,
            list(others),
        )
        amounts = weigh(repository, executor, source, history, known.bits, besides, len(known.names))
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
