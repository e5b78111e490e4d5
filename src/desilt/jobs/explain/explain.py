"""Why an object is kept, or by what it was removed: the whole evidence, for somebody who must answer for it.

The verdict is the one that a run of the uncommitted collection would give now, made by the same function from the
same facts. Nothing is changed, but that ranges which no run has decoded yet are, into the range cache.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa

from desilt.columns.buckets import HASH
from desilt.columns.mark import ORDER, reasons
from desilt.domain.reason import Reason
from desilt.domain.times import CLOCK_MARGIN, check_date
from desilt.errors import NotFound
from desilt.inventory.listing import inventory_of, stored_at
from desilt.jobs.explain.explanation import (
    MISSING,
    OUTSIDE,
    REMOVED,
    Explanation,
    HoldingCommit,
    HoldingRef,
    Removal,
)
from desilt.jobs.job import DROPPED_FOR
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.holds import Hold, HoldKind
from desilt.records.removals import DISCARDS, MARKS, State
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Snapshot
from desilt.repository.witness import Holders, Places, Uncommitted
from desilt.runs import archive
from desilt.runs.folder import trash_of


def explain(
    repository: Repository, wanted: str, *, ref: str | None = None, now: datetime | None = None
) -> list[Explanation]:
    """What is known of ``wanted``: an address, a URI inside the repository, or a path (with ``ref``, always a path)."""
    witness, at = repository.witness, check_date(now) if now else repository.clock()
    address = witness.address_in(wanted) if ref is None else None
    places: Places = {address: []} if address is not None else witness.places(wanted, ref)
    # What is stored comes before what holds it: then an object that goes meanwhile is found in the ledger.
    listed = {one: stored_at(repository.store, repository.prefix + one) for one in places if "://" not in one}
    history, uncommitted = witness.seen(places, at)
    with repository.records.read() as tx:
        known = [_recorded(tx, repository, history, one, uncommitted[one]) for one in places]
    orders = [hold for hold in repository.orders.every() if hold.counts(at)]
    holders = witness.holders(history.commits.values(), listed)
    judged = [
        _judged(
            repository,
            replace(_ordered(one, orders), places=tuple(places[one.address])),
            listed,
            uncommitted[one.address].listed_since,
            at,
        )
        for one in _held_by_commits(history, holders, known)
    ]
    if not any(map(_is_known, judged)):
        raise NotFound("object", wanted, way_out(repository, ref))
    return [one for one in judged if _is_known(one)]


def way_out(repository: Repository, ref: str | None) -> str:
    if ref is not None and "lake" in repository.refuses:
        return f"no path of {ref!r} is that; an address is explained without --ref"
    if ref is not None:
        return f"see `desilt lake ls` on {ref!r}; an address is explained without --ref"
    return f"no branch, tag, commit or run knows it; give a path, or an address below {repository.uri}"


def _is_known(one: Explanation) -> bool:
    return one.verdict != MISSING or bool(one.commits or one.staged or one.ticket or one.removal)


def _recorded(
    tx: Transaction, repository: Repository, history: Snapshot, address: str, held: Uncommitted
) -> Explanation:
    """What the records say of an address: staged entries, its ticket, and the ledger."""
    names = {branch.uid: branch.name for branch in history.branches}
    group = repository.layout.group_of(address) if repository.layout.is_object(address) else ""
    if group == repository.layout.data.rstrip("/"):  # all branches share one folder
        group = ""
    return Explanation(
        address=address,
        uri=address if "://" in address else repository.uri + address,
        named_at=repository.layout.named_at(address),
        branch=names.get(group, group),
        staged=held.staged,
        ticket=held.ticket,
        dropped=held.dropped,
        removal=_removal(tx, repository, address),
    )


def _removal(tx: Transaction, repository: Repository, address: str) -> Removal | None:
    stone = tombstones.recorded(tx, repository.uid, [address]).get(address)
    stone = stone or archive.find(repository.store, repository.prefix, address)
    if stone is None:
        return None
    told = Removal(stone.run, stone.rule, stone.condemned_at, stone.state, stone.size, restored_at=stone.restored_at)
    run = ledger.find(tx, repository.uid, stone.run)
    if run is None:
        return told
    return replace(
        told, job=run.job, policy=run.policy, action=run.action, started_at=run.started_at, run_state=run.state.value
    )


def _held_by_commits(history: Snapshot, holders: Holders, known: list[Explanation]) -> Iterator[Explanation]:
    """With the commits that hold each, and the refs that reach those."""
    reach = Ancestry(history)
    for one in known:
        held = holders.get(one.address, {})
        holding = [commit for commit in history.commits.values() if commit.metarange in held]
        refs = [HoldingRef(*ref) for ref in reach.refs({commit.id for commit in holding})]
        paths = {path for some in held.values() for path in some} | {area.path for area in one.staged}
        yield replace(
            one,
            paths=tuple(sorted(paths)),
            refs=tuple(sorted(refs, key=lambda ref: (not ref.shows, ref.name != history.default_branch, ref.name))),
            commits=tuple(
                HoldingCommit(
                    commit.id,
                    commit.created_at,
                    commit.committer,
                    commit.message,
                    tuple(sorted(held[commit.metarange])),
                    commit.id in reach.reached,
                )
                for commit in sorted(holding, key=lambda commit: (commit.created_at, commit.generation, commit.id))
            ),
        )


def _ordered(one: Explanation, orders: list[Hold]) -> Explanation:
    """With what people ordered to be kept."""
    commits = {commit.id for commit in one.commits}

    def names(hold: Hold) -> bool:
        if hold.kind is HoldKind.PREFIX:
            return any(path.startswith(hold.value) for path in one.paths)
        return hold.value == one.address if hold.kind is HoldKind.ADDRESS else hold.value in commits

    return replace(one, orders=tuple(filter(names, orders)))


def _judged(
    repository: Repository,
    one: Explanation,
    every: Mapping[str, pa.RecordBatch | None],
    listed_since: datetime | None,
    now: datetime,
) -> Explanation:
    """With its verdict: as a run would give it, for what a run would list."""
    if "://" in one.address:
        return replace(one, verdict=OUTSIDE)
    gone = one.removal is not None and one.removal.state is not State.RESTORED
    if one.removal is not None:
        in_trash = stored_at(repository.store, trash_of(repository.prefix, one.removal.run) + one.address) is not None
        one = replace(one, removal=replace(one.removal, in_trash=in_trash))
    listed = every.get(one.address)
    if listed is None:
        return replace(one, exists=False, verdict=REMOVED if gone else MISSING)
    size, modified_at = listed["size_bytes"][0].as_py(), listed["modified_at"][0].as_py()
    one = replace(one, exists=True, size=size, modified_at=modified_at)
    layout = repository.layout
    table = layout.is_table(one.address) and "gc" in repository.refuses  # then a collection looks at these, too
    if not one.address.startswith(layout.data) and not layout.is_object(one.address) and not table:
        return replace(one, verdict=OUTSIDE)
    if one.removal is not None and one.removal.state in MARKS:
        return replace(one, verdict=Reason.MARKED.value)
    if one.removal is not None and one.removal.state in DISCARDS:
        return replace(one, verdict=Reason.DISCARDED.value)
    settles = repository.grace + CLOCK_MARGIN
    before = now - settles
    removal, ticket, copied_at = one.removal, one.ticket, repository.witness.since_copy()
    back = removal is not None and removal.restored_at is not None and removal.restored_at >= before
    held_by = {
        Reason.COMMITTED: bool(one.commits),
        Reason.STAGED: bool(one.staged),
        Reason.TICKET: ticket is not None and ticket.open,
        Reason.HELD: any(hold.kind is HoldKind.ADDRESS for hold in one.orders),
        Reason.RESTORED: back,
        Reason.YOUNG: listed_since is not None and listed_since >= min(now, repository.clock()) - settles,
        Reason.DROPPED: one.dropped is not None and one.dropped.at >= min(now, repository.clock()) - DROPPED_FOR,
    }
    row = inventory_of(repository.prefix, [listed])
    hashes = {reason: row[HASH].to_numpy() if held else np.zeros(0, np.uint64) for reason, held in held_by.items()}
    reason = ORDER[reasons(row, hashes, layout=repository.layout, before=before, copied_at=copied_at)[0]]
    if table and reason is Reason.FOREIGN:  # it is not named as objects are
        reason = Reason.YOUNG if modified_at is None or modified_at >= before else Reason.UNREFERENCED
    times = {
        Reason.TICKET: [ticket.until] if ticket else [],
        Reason.RESTORED: [removal.restored_at + settles] if removal and removal.restored_at else [],
        Reason.DROPPED: [one.dropped.at + DROPPED_FOR] if one.dropped else [],
        Reason.YOUNG: [when + settles for when in (modified_at, one.named_at, listed_since) if when],
    }
    no_end = reason is Reason.YOUNG and modified_at is None  # without a time, it is young for ever
    until = None if no_end else max(times.get(reason, []), default=None)
    return replace(one, verdict=reason.value, until=until)


class Ancestry:
    """Which commits have which in their history."""

    def __init__(self, history: Snapshot) -> None:
        self._tips = [("branch", branch.name, branch.head) for branch in history.branches]
        self._tips += [("tag", tag.name, tag.target) for tag in history.tags]
        self._children: dict[str, list[str]] = {}
        for commit in history.commits.values():
            for parent in commit.parents:
                self._children.setdefault(parent, []).append(commit.id)
        self.reached = history.below(tip for _, _, tip in self._tips)  # by any ref

    def refs(self, ids: set[str]) -> Iterator[tuple[str, str, bool]]:
        """Kind and name of every ref that reaches one of the commits ``ids``; and whether it points to one."""
        descend, waiting = set(ids), list(ids)
        while waiting:
            new = [child for child in self._children.get(waiting.pop(), ()) if child not in descend]
            descend.update(new)
            waiting += new
        return ((kind, name, tip in ids) for kind, name, tip in self._tips if tip in descend)
