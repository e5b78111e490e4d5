"""Why an object is kept, or by what it was removed: the whole evidence, for somebody who must answer for it.

The verdict is the one that a run of the uncommitted collection would give now, made by the same function from the
same facts. Nothing is changed, but that ranges which no run has decoded yet are, into the range cache.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from desilt.domain.address import is_inside, is_object, uid_time
from desilt.domain.entry import decode_path
from desilt.domain.reason import Reason
from desilt.domain.ticket import Ticket
from desilt.domain.times import EPOCH, check_date, moment
from desilt.errors import NotFound
from desilt.frames.buckets import HASH
from desilt.frames.mark import ORDER, reasons
from desilt.jobs.explanation import (
    MISSING,
    OUTSIDE,
    REMOVED,
    Dropped,
    Explanation,
    HoldingArea,
    HoldingCommit,
    HoldingRef,
    HoldingTicket,
    Removal,
)
from desilt.jobs.job import Ask
from desilt.jobs.uncommitted import CLOCK_MARGIN
from desilt.lake import dropped, holds, ledger, restored, tickets, tombstones
from desilt.lake.core import Core
from desilt.lake.database import Transaction
from desilt.lake.holds import Hold, Kind
from desilt.lake.linking import spellings
from desilt.lake.repository import Repository
from desilt.lake.tombstones import State
from desilt.objects.store import check_key, flaw
from desilt.runs.folder import trash_of
from desilt.sources.finding import Committed, History, Reach, places_at, places_today, read_history, staged_holders
from desilt.sources.inventory import DATA, inventory_of

Places = Mapping[str, Sequence[str]]  # by address: where the path that was asked for has it
Holders = Mapping[str, Mapping[str, set[str]]]  # by address and metarange: paths
UID_LENGTH = 20
DROPPED_FOR = Ask().dropped_for


def explain(
    repository: Repository, wanted: str, *, ref: str | None = None, now: datetime | None = None
) -> list[Explanation]:
    """What is known of ``wanted``: an address, a URI inside the repository, or a path (with ``ref``, always a path)."""
    core = repository.core
    at = check_date(now) if now else core.clock()
    address = address_in(core, wanted) if ref is None else None
    places = {address: []} if address is not None else places_of(core, wanted, ref)
    # What is stored comes before what holds it: then an object that goes meanwhile is found in the ledger.
    listed = {one: stored(core, one) for one in places if "://" not in one}
    with core.database.read() as tx:
        history = read_history(tx, core)
        waiting = {
            ticket.address: ticket for ticket in tickets.open_at(tx, core.uid, EPOCH) if ticket.address in places
        }
        known = [_recorded(tx, core, history, one, waiting.get(one), at) for one in places]
        orders = [hold for hold in holds.every(tx, core.uid) if hold.counts(at)]
    holders = _committed(core, history).holders(listed)
    judged = [
        _judged(core, replace(_ordered(one, orders), places=tuple(places[one.address])), listed.get(one.address), at)
        for one in _held_by_commits(core, history, holders, known)
    ]
    if not any(map(_is_known, judged)):
        raise NotFound("object", wanted, way_out(core, ref))
    return [one for one in judged if _is_known(one)]


def address_in(core: Core, wanted: str) -> str | None:
    """``wanted`` as an address of the repository; None if it must be a path."""
    if is_object(wanted):
        return wanted
    if wanted.startswith(core.uri):
        return check_key(wanted.removeprefix(core.uri))
    uri = f"file://{wanted}" if wanted.startswith("/") else wanted
    leads_here = "://" in uri and core.prefix in unquote(uri)
    if leads_here and any(is_inside(form, root) for form in spellings(uri) for root in spellings(core.uri)):
        return check_key(unquote(uri).partition(core.prefix)[2])
    return None


def places_of(core: Core, path: str, ref: str | None) -> Places:
    """Every address of ``path``: today, or at ``ref``; of one that is nowhere today, those it ever had."""
    if ref is not None:
        return places_at(core, path, ref)
    with core.database.read() as tx:
        history = read_history(tx, core)
        places = places_today(tx, core, history, path)
        waiting = [ticket.address for ticket in tickets.open_at(tx, core.uid, EPOCH) if ticket.path == path]
    if not places:
        ever = _committed(core, history).addresses(path)
        places = {address: ["upload"] for address in waiting} | {address: ["history"] for address in ever}
    if not places and path.startswith(DATA) and not flaw(path):
        return {path: []}  # no path: the address of something that somebody else put there, maybe
    return places


def way_out(core: Core, ref: str | None) -> str:
    if ref is not None:
        return f"see `desilt lake ls` on {ref!r}; an address is explained without --ref"
    return f"no branch, tag, commit or run knows it; give a path, or an address below {core.uri}"


def stored(core: Core, address: str) -> pa.RecordBatch | None:
    """The object as a run lists it: one row."""
    key = core.prefix + address
    if flaw(key):
        return None  # no store keeps such a key
    batch = next(core.store.list(key), None)  # no key sorts before what it begins with
    return batch.slice(0, 1) if batch is not None and batch["key"][0].as_py() == key else None


def _committed(core: Core, history: History) -> Committed:
    return Committed(core, (commit.metarange for commit in history.commits.values()))


def _is_known(one: Explanation) -> bool:
    return one.verdict != MISSING or bool(one.commits or one.staged or one.ticket or one.removal)


def _recorded(
    tx: Transaction, core: Core, history: History, address: str, ticket: Ticket | None, now: datetime
) -> Explanation:
    """What the database says of an address: staged entries, its ticket, and the ledger."""
    names = {branch.uid: branch.name for branch in history.branches}
    areas = sorted(
        (branch.name, path, hidden) for branch, path, hidden in staged_holders(tx, core, history.branches, address)
    )
    parts = address.split("/")
    name = parts[-1] if is_object(address) and len(parts[-1]) == UID_LENGTH else ""
    return Explanation(
        address=address,
        uri=address if "://" in address else core.uri + address,
        named_at=uid_time(name) if name else None,
        branch=names.get(parts[1], parts[1]) if is_object(address) else "",
        staged=tuple(HoldingArea(*area) for area in areas),
        ticket=_ticket(ticket, names, min(now, core.clock())) if ticket else None,
        dropped=_dropped(tx, core, address, names),
        removal=_removal(tx, core, address),
    )


def _dropped(tx: Transaction, core: Core, address: str, names: Mapping[str, str]) -> Dropped | None:
    found = dropped.last(tx, core.uid, address)
    if found is None:
        return None
    branch, path, at = found
    return Dropped(names.get(branch, branch), decode_path(path), at)


def _ticket(ticket: Ticket, names: Mapping[str, str], now: datetime) -> HoldingTicket:
    until = moment(ticket.expires_at)
    return HoldingTicket(names.get(ticket.branch, ticket.branch), ticket.path, until, until > now)


def _removal(tx: Transaction, core: Core, address: str) -> Removal | None:
    stone = tombstones.recorded(tx, core.uid, [address]).get(address)
    if stone is None:
        return None
    told = Removal(stone.run, stone.rule, stone.condemned_at, stone.state, stone.size, restored_at=stone.restored_at)
    run = ledger.find(tx, core.uid, stone.run)
    if run is None:
        return told
    return replace(
        told, job=run.job, policy=run.policy, action=run.action, started_at=run.started_at, run_state=run.state.value
    )


def _held_by_commits(core: Core, history: History, holders: Holders, known: list[Explanation]) -> Iterator[Explanation]:
    """With the commits that hold each, and the refs that reach those."""
    reach = Reach(history)
    for one in known:
        held = holders.get(one.address, {})
        holding = [commit for commit in history.commits.values() if commit.metarange in held]
        refs = [HoldingRef(*ref) for ref in reach.refs({commit.id for commit in holding})]
        paths = {path for some in held.values() for path in some} | {area.path for area in one.staged}
        yield replace(
            one,
            paths=tuple(sorted(paths)),
            refs=tuple(sorted(refs, key=lambda ref: (not ref.shows, ref.name != core.default_branch, ref.name))),
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
        if hold.kind is Kind.PREFIX:
            return any(path.startswith(hold.value) for path in one.paths)
        return hold.value == one.address if hold.kind is Kind.ADDRESS else hold.value in commits

    return replace(one, orders=tuple(filter(names, orders)))


def _judged(core: Core, one: Explanation, listed: pa.RecordBatch | None, now: datetime) -> Explanation:
    """With its verdict: as a run would give it, for what a run would list."""
    if "://" in one.address:
        return replace(one, verdict=OUTSIDE)
    gone = one.removal is not None and one.removal.state is not State.RESTORED
    if one.removal is not None:
        in_trash = stored(core, trash_of("", one.removal.run) + one.address) is not None
        one = replace(one, removal=replace(one.removal, in_trash=in_trash))
    if listed is None:
        return replace(one, exists=False, verdict=REMOVED if gone else MISSING)
    size, modified_at = listed["size_bytes"][0].as_py(), listed["modified_at"][0].as_py()
    one = replace(one, exists=True, size=size, modified_at=modified_at)
    if not one.address.startswith(DATA):
        return replace(one, verdict=OUTSIDE)
    settles = core.ticket_life + CLOCK_MARGIN
    before = now - settles
    removal, ticket, copied_at = one.removal, one.ticket, restored.kept_since(core)
    back = removal is not None and removal.restored_at is not None and removal.restored_at >= before
    held_by = {
        Reason.COMMITTED: bool(one.commits),
        Reason.STAGED: bool(one.staged),
        Reason.TICKET: ticket is not None and ticket.open,
        Reason.HELD: any(hold.kind is Kind.ADDRESS for hold in one.orders),
        Reason.RESTORED: back,
        Reason.DROPPED: one.dropped is not None and one.dropped.at >= min(now, core.clock()) - DROPPED_FOR,
    }
    row = inventory_of(core.prefix, [listed])
    hashes = {reason: row[HASH].to_numpy() if held else np.zeros(0, np.uint64) for reason, held in held_by.items()}
    reason = ORDER[reasons(row, hashes, before=before, copied_at=copied_at)[0]]
    times = {
        Reason.TICKET: [ticket.until] if ticket else [],
        Reason.RESTORED: [removal.restored_at + settles] if removal and removal.restored_at else [],
        Reason.DROPPED: [one.dropped.at + DROPPED_FOR] if one.dropped else [],
        Reason.YOUNG: [when + settles for when in (modified_at, one.named_at) if when],
    }
    no_end = reason is Reason.YOUNG and modified_at is None  # without a time, it is young for ever
    until = None if no_end else max(times.get(reason, []), default=None)
    return replace(one, verdict=reason.value, until=until)
