"""What a collection after an expiration would free: the number that people decide by.

It is what commits have that the expiration abandons, and nothing that stays has: no other
commit that a ref or a hold reaches, no staging area, no order to keep.
"""

from collections.abc import Mapping, Sequence

from desilt.columns.files import HeldFile
from desilt.executors.executor import Executor
from desilt.jobs.pins.weigh import Besides, weigh
from desilt.records.holds import HoldKind
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Pointers, Source
from desilt.runs.report import Amount, Freed, FreedBy

STAYS = 1  # a bit: something keeps it whatever happens


def freed(
    repository: Repository,
    executor: Executor,
    source: Source,
    seen: Snapshot,
    staged: Pointers,
    abandoned: Mapping[str, Sequence[str]],
    also_gone: Sequence[HeldFile] = (),
) -> Freed:
    """What only ``abandoned`` commits have, each with the refs that reach it by now; by ref."""
    names = sorted({name for refs in abandoned.values() for name in refs})
    bit = {name: 2 << number for number, name in enumerate(names)}
    reached = seen.below(seen.tips)
    bits = {
        commit: sum(bit[name] for name in abandoned[commit]) if commit in abandoned else STAYS * (commit in reached)
        for commit in seen.commits
    }
    besides = Besides(
        [(hold.value, STAYS) for hold in seen.held(HoldKind.PREFIX)],
        [(hold.value, STAYS) for hold in seen.held(HoldKind.ADDRESS)],
        staged,
        [STAYS] * len(staged.names),
    )
    amounts = weigh(repository, executor, source, seen, bits, besides, len(names) + 1, also_gone)
    going = {refs: amount for refs, amount in amounts.items() if refs and not refs & STAYS}
    by = [
        FreedBy(
            name,
            going.get(bit[name], Amount()),
            sum((amount for refs, amount in going.items() if refs & bit[name] and refs != bit[name]), Amount()),
        )
        for name in names
    ]
    by.sort(key=lambda one: (-one.alone.bytes, -one.together.bytes, one.ref))
    return Freed(sum(going.values(), Amount()), tuple(by))
