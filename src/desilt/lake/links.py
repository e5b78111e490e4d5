"""Objects that others upload: addresses handed out with a ticket, and linked back; and objects kept elsewhere."""

import os
from dataclasses import dataclass
from urllib.parse import unquote

from desilt.domain.address import is_inside
from desilt.domain.entry import AddressType, Entry, new_path
from desilt.domain.ticket import Ticket, sign, verify
from desilt.domain.times import microseconds, nanoseconds
from desilt.errors import BadRequest, BadTicket, NotFound
from desilt.lake import fresh, refs, repositories, staging, tickets
from desilt.lake.core import Core
from desilt.lake.dropping import By, dropping
from desilt.lake.partitions import Partitions
from desilt.lake.upload import About, Metered
from desilt.records import removals as tombstones
from desilt.sstable.values import encode_entry


@dataclass(frozen=True, slots=True)
class PhysicalAddress:
    """Where to upload, and what to bring back to link it."""

    uri: str
    token: str
    ticket: Ticket


def physical_address(core: Core, partitions: Partitions, branch: str, path: str) -> PhysicalAddress:
    """A new address for whoever uploads without us; its ticket holds it until it is linked or expires."""
    new_path(path)
    with core.database.read() as tx:
        seen = refs.branch(tx, core.uid, branch)
    address = partitions.new_address(seen.uid)
    ticket = Ticket(core.uid, seen.uid, path, address, microseconds(core.clock() + core.ticket_life))
    with core.database.write() as tx:
        tickets.hold(tx, ticket)
    return PhysicalAddress(core.uri + address, sign(ticket, core.secret), ticket)


def link(core: Core, branch: str, path: str, token: str, about: About, *, checksum: str | None) -> Entry:
    """Stage what was uploaded to a ticket's address: once, before it expires, at the path it was made for."""
    key = new_path(path)
    ticket = verify(token, core.secret, path=path)
    if (ticket.repository, ticket.path) != (core.uid, path):
        raise BadTicket(path, f"was made for {ticket.path!r} of repository {ticket.repository}")
    object_key = core.prefix + ticket.address
    try:
        size = core.store.head(object_key).size
    except NotFound:
        raise BadTicket(path, "has no object at its address yet") from None
    if checksum is None:
        metered = Metered(core.store.stream(object_key))
        size = sum(len(chunk) for chunk in metered)
        checksum = metered.md5.hexdigest()
    entry = Entry(
        path,
        ticket.address,
        size,
        checksum,
        nanoseconds(core.clock()),
        about.metadata,
        content_type=about.content_type,
    )
    with core.database.write() as tx:
        repositories.writing(tx, core.uid)
        on = refs.branch(tx, core.uid, branch, lock="shared")
        if on.uid != ticket.branch:
            raise BadTicket(path, "was made for another branch")
        tickets.use(tx, ticket, now=core.clock())
        tombstones.refuse_gone(tx, core.uid, ticket.address, path)
        fresh.add(tx, core.uid, entry.address, entry.size)
        with dropping(tx, core.uid, on.uid, head=on.head, by=By.OVERWRITTEN, at=core.clock()) as drops:
            staging.stage(tx, on.token, key, encode_entry(entry), drops)
    return entry


def spellings(uri: str) -> list[str]:
    """``uri``, and where it leads on a disk once links are followed."""
    scheme, _, path = uri.partition("://")
    if scheme.lower() not in ("file", "lake"):
        return [uri]
    host, slash, rest = path.partition("/")
    local = unquote(slash + rest if host.lower() == "localhost" else path)
    return [f"file://{local}", f"file://{os.path.realpath(local)}"]


def stage_elsewhere(core: Core, branch: str, path: str, uri: str, about: About, *, size: int, checksum: str) -> Entry:
    """Stage an object that lies outside of the lake, and that no job of ours will ever remove."""
    key = new_path(path)
    if "://" not in uri:
        raise BadRequest(f"{uri!r} is no address; write a whole URI, as in s3://bucket/key")
    if not 0 <= size < 2**63:
        raise BadRequest(f"an object cannot have {size} bytes")
    lake = spellings(core.store.uri.partition("?")[0])
    inside = any(is_inside(form, root) for form in spellings(uri) for root in lake)
    if inside or core.prefix in unquote(unquote(uri)):
        raise BadRequest(f"{uri!r} is inside the lake; put, copy or link it instead, so that it stays held")
    entry = Entry(
        path,
        uri,
        size,
        checksum,
        nanoseconds(core.clock()),
        about.metadata,
        address_type=AddressType.FULL,
        content_type=about.content_type,
    )
    with core.database.write() as tx:
        repositories.writing(tx, core.uid)
        on = refs.branch(tx, core.uid, branch, lock="shared")
        with dropping(tx, core.uid, on.uid, head=on.head, by=By.OVERWRITTEN, at=core.clock()) as drops:
            staging.stage(tx, on.token, key, encode_entry(entry), drops)
    return entry
