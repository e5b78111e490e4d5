"""What keeps each object, the slow and obvious way: sets of names in memory, nothing clever."""

from desilt.lake import commits, refs, staging
from desilt.lake.repository import LakeRepository
from desilt.records import holds
from desilt.records.holds import HoldKind
from desilt.sstable.values import decode_entry
from desilt.testing import oracle
from desilt.testing.oracle import contents, stored

Pins = frozenset[str]


def pins(repository: LakeRepository) -> dict[str, Pins]:
    """For every stored object that a commit, a staging area or a hold points to, the names of all that keep it."""
    with repository.database.read() as tx:
        made = {commit.id: commit for commit in commits.every(tx, repository.uid)}
        branches = refs.branches(tx, repository.uid)
        tips = [(f"branch {branch.name}", branch.head) for branch in branches]
        tips += [(f"tag {tag.name}", tag.target) for tag in refs.tags(tx, repository.uid)]
        orders = {f"hold {one.id} ({one.reason})": one for one in holds.every(tx, repository.uid)}
        orders = {name: one for name, one in orders.items() if one.until is None or one.until > repository.clock()}
        areas = [(branch.name, pair) for branch in branches for t in branch.tokens for pair in staging.scan(tx, [t])]
    tips += [(name, one.value) for name, one in orders.items() if one.kind is HoldKind.REF]
    below = {name: one for name, one in orders.items() if one.kind is HoldKind.PREFIX}
    found: dict[str, set[str]] = {}
    entries = contents(repository, {commit.metarange for commit in made.values()})
    for commit in made.values():
        reached = {name for name, tip in tips if commit.id in oracle.below(made, [tip])}
        for entry in entries[commit.metarange]:
            named = {name for name, one in below.items() if entry.path.startswith(one.value)}
            found.setdefault(entry.address, set()).update(reached | named)
    for branch, (key, value) in areas:
        if value is not None:
            found.setdefault(decode_entry(key, value).address, set()).add(f"staged on {branch}")
    for name, one in orders.items():
        if one.kind is HoldKind.ADDRESS:
            found.setdefault(one.value, set()).add(name)
    there = stored(repository)
    return {address: frozenset(names) for address, names in found.items() if address in there}


def kept(repository: LakeRepository) -> dict[Pins, tuple[int, int]]:
    """For every set of pins, how many objects and bytes it keeps."""
    sizes, amounts = stored(repository), dict[Pins, tuple[int, int]]()
    for address, names in pins(repository).items():
        objects, size = amounts.get(names, (0, 0))
        amounts[names] = objects + 1, size + sizes[address]
    return amounts
