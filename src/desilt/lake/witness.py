"""One address, or one path, looked for among everything that commits and staging areas hold."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from urllib.parse import unquote

from desilt.cache.lookup import CommittedEntries
from desilt.domain.address import is_inside
from desilt.domain.entry import AddressType, Entry, decode_path, encode_path
from desilt.domain.history import Commit
from desilt.domain.ticket import Ticket
from desilt.domain.times import EPOCH, moment
from desilt.lake import dropped, reader, refs, restored, staging, tickets
from desilt.lake.core import Core
from desilt.lake.layout import LAYOUT
from desilt.lake.links import spellings
from desilt.lake.listing import lookup
from desilt.lake.views import view
from desilt.objects.store import check_key, flaw
from desilt.records.database import Transaction
from desilt.repository.snapshot import Snapshot
from desilt.repository.witness import Dropped, Holders, HoldingArea, HoldingTicket, Places, Uncommitted
from desilt.sstable.values import decode_entry


class LakeWitness:
    """Of one repository of a lake of our own."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def address_in(self, wanted: str) -> str | None:
        """``wanted`` as an address of the repository; None if it must be a path."""
        core = self._core
        if LAYOUT.is_object(wanted):
            return wanted
        if wanted.startswith(core.uri):
            return check_key(wanted.removeprefix(core.uri))
        uri = f"file://{wanted}" if wanted.startswith("/") else wanted
        leads_here = "://" in uri and core.prefix in unquote(uri)
        if leads_here and any(is_inside(form, root) for form in spellings(uri) for root in spellings(core.uri)):
            return check_key(unquote(uri).partition(core.prefix)[2])
        return None

    def places(self, path: str, ref: str | None) -> Places:
        """Every address of ``path``: today, or at ``ref``; of one that is nowhere today, those it ever had."""
        core = self._core
        if ref is not None:
            return places_at(core, path, ref)
        with core.database.read() as tx:
            history = reader.read(tx, core, core.clock())
            places = places_today(tx, core, history, path)
            waiting = [ticket.address for ticket in tickets.open_at(tx, core.uid, EPOCH) if ticket.path == path]
        if not places:
            ever = self._committed(history.commits.values()).addresses(path)
            places = {address: ["upload"] for address in waiting} | {address: ["history"] for address in ever}
        if not places and path.startswith(LAYOUT.data) and not flaw(path):
            return {path: []}  # no path: the address of something that somebody else put there, maybe
        return places

    def seen(self, addresses: Collection[str], now: datetime) -> tuple[Snapshot, dict[str, Uncommitted]]:
        core = self._core
        with core.database.read() as tx:
            history = reader.read(tx, core, now)
            waiting = {
                ticket.address: ticket
                for ticket in tickets.open_at(tx, core.uid, EPOCH)
                if ticket.address in set(addresses)
            }
            names = {branch.uid: branch.name for branch in history.branches}
            return history, {
                one: Uncommitted(
                    tuple(HoldingArea(*area) for area in sorted(staged_holders(tx, core, one))),
                    _ticket(waiting[one], names, min(now, core.clock())) if one in waiting else None,
                    _dropped(tx, core, one, names),
                )
                for one in addresses
            }

    def holders(self, commits: Collection[Commit], addresses: Collection[str]) -> Holders:
        return self._committed(commits).holders(addresses)

    def _committed(self, commits: Collection[Commit]) -> CommittedEntries:
        core = self._core
        return CommittedEntries(core.store, core.prefix, core.ranges.metarange, commits, decoder=core.decoder)

    def since_copy(self) -> datetime | None:
        return restored.kept_since(self._core)


def _ticket(ticket: Ticket, names: Mapping[str, str], now: datetime) -> HoldingTicket:
    until = moment(ticket.expires_at)
    return HoldingTicket(names.get(ticket.branch, ticket.branch), ticket.path, until, until > now)


def _dropped(tx: Transaction, core: Core, address: str, names: Mapping[str, str]) -> Dropped | None:
    found = dropped.last(tx, core.uid, address)
    if found is None:
        return None
    branch, path, at = found
    return Dropped(names.get(branch, branch), decode_path(path), at)


def held_by(core: Core, entry: Entry) -> str:
    """The address in the repository that ``entry`` holds, as runs see it; a whole URI if it lies elsewhere."""
    by_prefix = entry.address_type is AddressType.BY_PREFIX and "://" not in entry.address
    if entry.address_type is AddressType.RELATIVE or by_prefix:
        return entry.address
    return entry.address.rpartition(core.prefix)[2]  # one that leads into the repository after all holds it


def places_at(core: Core, path: str, ref: str) -> dict[str, list[str]]:
    """What ``path`` points to at ``ref``, with what is staged there on top: none, or one."""
    key = encode_path(path)
    with view(core, ref) as (tx, seen):
        value = lookup(tx, core.ranges, seen, key)
    return {} if value is None else {held_by(core, decode_entry(key, value)): [ref]}


def places_today(tx: Transaction, core: Core, history: Snapshot, path: str) -> dict[str, list[str]]:
    """Every address that ``path`` has on a branch, staged or committed, or at a tag; and where it has it."""
    key = encode_path(path)
    seen: list[tuple[bytes | None, str]] = []
    for branch in refs.branches(tx, core.uid):
        hidden = ""
        for token in branch.tokens:
            known, value = staging.find(tx, [token], key)
            seen.append((value, f"{branch.name} (staged{hidden})"))
            hidden = ", hidden" if known else hidden
    heads = [(branch.head, branch.name) for branch in history.branches]
    heads += [(tag.target, f"tag {tag.name}") for tag in history.tags]
    values: dict[str, bytes | None] = {}
    for head, name in heads:
        metarange = history.commits[head].metarange
        if metarange not in values:
            values[metarange] = core.ranges.get(metarange, key)
        seen.append((values[metarange], name))
    places: dict[str, list[str]] = {}
    for value, place in seen:
        if value is not None:
            places.setdefault(held_by(core, decode_entry(key, value)), []).append(place)
    return places


def staged_holders(tx: Transaction, core: Core, address: str) -> Iterator[tuple[str, str, bool]]:
    """Branch and path of everything staged that holds ``address``; and whether something newer hides it."""
    branches = refs.branches(tx, core.uid)
    areas = {token: (branch, age) for branch in branches for age, token in enumerate(branch.tokens)}
    rows = tx.rows(
        "SELECT token, path, value FROM staging WHERE address = ? OR address LIKE ?",
        *(address, f"%{core.prefix}{address}"),  # finds more than is meant: what is found is read
    )
    for token, path, value in rows:
        key = bytes(path)
        if token in areas and held_by(core, decode_entry(key, bytes(value))) == address:
            branch, age = areas[token]
            yield branch.name, decode_path(key), staging.find(tx, branch.tokens[:age], key)[0]
