"""What is garbage, the slow and obvious way: sets of addresses in memory, nothing clever.

Every job is judged by this. It must stay short enough to be believed at a glance.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from desilt.domain.address import uid_time
from desilt.domain.entry import Entry
from desilt.domain.history import Commit
from desilt.domain.policy import Policy, Rule, Tags
from desilt.lake import commits, dropped, refs, staging, tickets
from desilt.lake.layout import LAYOUT
from desilt.lake.repository import LakeRepository
from desilt.records import holds, marks
from desilt.records import removals as tombstones
from desilt.records.holds import HoldKind
from desilt.records.removals import MARKS, State
from desilt.sstable.ranges import FOLDER as RANGES
from desilt.sstable.values import decode_entry

SPECIAL = ("_lakefs/", "_desilt/")
DAY = timedelta(days=1)


def stored(repository: LakeRepository) -> dict[str, int]:
    """Every object below the repository's prefix that is not metadata: its address and size."""
    found = {}
    for batch in repository.store.list(repository.prefix):
        for key, size in zip(batch["key"].to_pylist(), batch["size_bytes"].to_pylist(), strict=True):
            address = key.removeprefix(repository.prefix)
            if not address.startswith(SPECIAL):
                found[address] = size
    return found


def committed(repository: LakeRepository) -> set[str]:
    """The addresses in all commits, whether a ref reaches them or not."""
    with repository.database.read() as tx:
        metaranges = {commit.metarange for commit in commits.every(tx, repository.uid)}
    return {entry.address for entries in contents(repository, metaranges).values() for entry in entries}


def contents(repository: LakeRepository, metaranges: set[str]) -> dict[str, list[Entry]]:
    """All entries of each of ``metaranges``."""
    listed = {metarange: list(repository.ranges.metarange(metarange)) for metarange in metaranges}
    read = {}
    for one in {one.id: one for ranges in listed.values() for one in ranges}.values():
        records = repository.ranges.read(one)
        pairs = zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True)
        read[one.id] = [decode_entry(key, value) for key, value in pairs]
    return {metarange: [entry for one in ranges for entry in read[one.id]] for metarange, ranges in listed.items()}


def staged(repository: LakeRepository) -> set[str]:
    """The addresses in all staging areas of all branches, sealed ones too, even where a newer one hides them."""
    with repository.database.read() as tx:
        tokens = [token for branch in refs.branches(tx, repository.uid) for token in branch.tokens]
        pairs = [pair for token in tokens for pair in staging.scan(tx, [token])]
    return {decode_entry(key, value).address for key, value in pairs if value is not None}


def ticketed(repository: LakeRepository, now: datetime) -> set[str]:
    """The addresses of uploads that may still be linked."""
    with repository.database.read() as tx:
        return {ticket.address for ticket in tickets.open_at(tx, repository.uid, now)}


def collectable(repository: LakeRepository, now: datetime, *, dropped_for: timedelta = DAY) -> set[str]:
    """Garbage that nobody ordered to be kept, older than a ticket lives by the store and by its own name.

    What a staging area pointed to within the last day is somebody's who reads it.
    """
    before = old(repository, now)
    return {
        address
        for address in set(garbage(repository))
        - ordered(repository, now, before)
        - lately(repository, now - dropped_for)
        if repository.store.head(repository.prefix + address).modified_at < before
        and uid_time(address.rsplit("/", 1)[-1]) < before
    }


def old(repository: LakeRepository, now: datetime) -> datetime:
    """What is from before this moment was not written by anybody who is still at work."""
    return now - repository.core.ticket_life - timedelta(minutes=10)


def ordered(repository: LakeRepository, now: datetime, before: datetime) -> set[str]:
    """Of uploads under way, of holds, of what was brought back since ``before``, and of what is marked."""
    with repository.database.read() as tx:
        back = set(tombstones.restored_since(tx, repository.uid, before)) | set(marks.marked(tx, repository.uid))
    return ticketed(repository, now) | held(repository, HoldKind.ADDRESS) | back


def lately(repository: LakeRepository, since: datetime) -> set[str]:
    """The addresses that staging areas dropped since then."""
    with repository.database.read() as tx:
        return {one for some in dropped.since(tx, repository.uid, since) for one in some.to_pylist()}


def held(repository: LakeRepository, kind: HoldKind) -> set[str]:
    """What holds of a kind name, as long as they count."""
    with repository.database.read() as tx:
        return {
            one.value for one in holds.every(tx, repository.uid) if one.kind is kind and one.counts(repository.clock())
        }


def history(repository: LakeRepository) -> dict[str, Commit]:
    """All commits there are."""
    with repository.database.read() as tx:
        return {commit.id: commit for commit in commits.every(tx, repository.uid)}


def tips(repository: LakeRepository) -> set[str]:
    """The commits that branches, tags and holds name."""
    with repository.database.read() as tx:
        named = {branch.head for branch in refs.branches(tx, repository.uid)}
        named |= {tag.target for tag in refs.tags(tx, repository.uid)}
    return named | held(repository, HoldKind.REF)


def reached(repository: LakeRepository) -> set[str]:
    """The commits that those reach, by the parents that commits have today."""
    return below(history(repository), tips(repository))


def collectable_commits(repository: LakeRepository, before: datetime) -> set[str]:
    """What nothing reaches, nor a young commit, nor one that alone has something below a held prefix."""
    made = history(repository)
    young = {name for name, commit in made.items() if commit.created_at >= before}
    live = reached(repository) | below(made, young)
    entries = contents(repository, {commit.metarange for commit in made.values()})
    known = {_fact(entry) for name in live for entry in entries[made[name].metarange]}
    prefixes = tuple(held(repository, HoldKind.PREFIX))
    kept = {
        name
        for name in made.keys() - live
        if any(one.path.startswith(prefixes) and _fact(one) not in known for one in entries[made[name].metarange])
    }
    return made.keys() - live - below(made, kept)


def collectable_objects(repository: LakeRepository, before: datetime) -> set[str]:
    """What only collectable commits have, and what nobody ordered to be kept, is old by every clock, and is there."""
    made, dead = history(repository), collectable_commits(repository, before)
    entries = contents(repository, {commit.metarange for commit in made.values()})
    going = {entry.address for name in dead for entry in entries[made[name].metarange]}
    staying = staged(repository) | ordered(repository, repository.clock(), before)
    for name, commit in made.items():
        young = {one.address for one in entries[commit.metarange] if max(one.modified_at, named_at(one)) >= before}
        staying |= young if name in dead else {entry.address for entry in entries[commit.metarange]}
    return (going - staying) & set(stored(repository))


def dead_tables(repository: LakeRepository, before: datetime) -> set[str]:
    """The names of ranges and metaranges that only collectable commits have, or none, and that are old."""
    dead = collectable_commits(repository, before)
    live = {commit.metarange for name, commit in history(repository).items() if name not in dead}
    live |= {listed.id for metarange in live for listed in repository.ranges.metarange(metarange)}
    return {name for name, at in tables(repository).items() if name not in live and at < before}


def tables(repository: LakeRepository) -> dict[str, datetime]:
    """Every range and metarange that is stored, and since when."""
    found = {}
    for batch in repository.store.list(repository.prefix + RANGES):
        for key, at in zip(batch["key"].to_pylist(), batch["modified_at"].to_pylist(), strict=True):
            if LAYOUT.is_table(key.removeprefix(repository.prefix)):
                found[key.removeprefix(repository.prefix + RANGES)] = at
    return found


def garbage(repository: LakeRepository) -> dict[str, int]:
    """Objects that nothing points to, by address, with their sizes."""
    held = staged(repository) | committed(repository)
    return {address: size for address, size in stored(repository).items() if address not in held}


def expired(repository: LakeRepository, policy: Policy, now: datetime) -> set[str]:
    """What a lifecycle run at ``now`` removes: every entry, in every commit, on every branch that reaches it, lets go.

    Deletes that failed are among it: their objects are there, and are tried again.
    """
    with repository.database.read() as tx:
        made = {commit.id: commit for commit in commits.every(tx, repository.uid)}
        heads = {branch.name: branch.head for branch in refs.branches(tx, repository.uid)}
        tagged = {tag.target for tag in refs.tags(tx, repository.uid)}
        at = min(now, repository.clock())
        orders = [hold for hold in holds.every(tx, repository.uid) if hold.until is None or hold.until > at]
        stones = tombstones.recorded(tx, repository.uid, sorted(stored(repository)))
    named = {kind: {hold.value for hold in orders if hold.kind is kind} for kind in HoldKind}
    holding = named[HoldKind.REF] | (tagged if policy.tags is Tags.HOLD else set())
    entries = contents(repository, {commit.metarange for commit in made.values()})
    current = {branch: set(map(_fact, entries[made[head].metarange])) for branch, head in heads.items()}
    past = {branch: below(made, [head]) for branch, head in heads.items()}

    def goes(commit: Commit, entry: Entry) -> bool:
        branches = [branch for branch in heads if commit.id in past[branch]]
        ordered = commit.id in holding or any(entry.path.startswith(prefix) for prefix in named[HoldKind.PREFIX])
        if not branches or ordered or any(keep.holds(entry.path) for keep in policy.keep):
            return False
        return all(any(releases(rule, branch, entry) for rule in policy.rules) for branch in branches)

    def releases(rule: Rule, branch: str, entry: Entry) -> bool:
        days = _period(rule, branch)
        applies = rule.enabled and days is not None and entry.path.startswith(rule.prefix)
        spared = rule.noncurrent_only and _fact(entry) in current[branch]
        younger = max(entry.modified_at, named_at(entry))  # if any clock says so
        return applies and not spared and younger < now - timedelta(days=days or 0)

    going: set[str] = set()
    staying = staged(repository) | named[HoldKind.ADDRESS] | lately(repository, at - DAY)
    for commit in made.values():
        for entry in entries[commit.metarange]:
            (going if goes(commit, entry) else staying).add(entry.address)
    for address, stone in stones.items():
        back = stone.restored_at is not None and stone.restored_at >= now - repository.core.ticket_life
        if back or stone.state in (State.REMOVED, State.GONE, State.TRASHED, State.RESTORING, *MARKS):
            staying.add(address)
    return (going - staying) & set(stored(repository))


def named_at(entry: Entry) -> datetime:
    return uid_time(entry.address.rsplit("/", 1)[-1]) if LAYOUT.is_object(entry.address) else entry.modified_at


def _fact(entry: Entry) -> tuple[str, str, int]:
    return entry.path, entry.address, entry.modified_ns


def below(made: Mapping[str, Commit], tips: Iterable[str]) -> set[str]:
    """``tips`` and all that they descend from."""
    found, todo = set(), list(tips)
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += made[one].parents
    return found


def _period(rule: Rule, branch: str) -> int | None:
    """By name; else by the glob with most plain characters, the longest period of equals; else for all branches."""
    if branch in rule.branch_days:
        return rule.branch_days[branch]
    fitting = [
        (len(re.sub(r"\[.+?\]|[*?]", "", glob)), days)
        for glob, days in rule.branch_days.items()
        if fnmatchcase(branch, glob)
    ]
    return max(fitting)[1] if fitting else rule.days
