"""What retention marks, the slow and obvious way: every entry of every commit and staging area, one by one."""

from datetime import datetime, timedelta

from desilt.domain.entry import Entry
from desilt.domain.policy import KeepRule
from desilt.domain.retention import Kind, Retention, RuleExpiry
from desilt.lake import refs, staging
from desilt.lake.repository import LakeRepository
from desilt.records import removals as tombstones
from desilt.records.holds import HoldKind
from desilt.records.removals import State
from desilt.sstable.values import decode_entry
from desilt.testing import oracle


def marked(
    repository: LakeRepository, retention: Retention, now: datetime, *, keep: tuple[KeepRule, ...] = ()
) -> set[str]:
    """What a run at ``now`` marks: every entry, in every commit on every branch and in every staging area, lets go."""
    made, uid = oracle.history(repository), repository.uid
    with repository.database.read() as tx:
        branches = list(refs.branches(tx, uid))
        tagged = {tag.target for tag in refs.tags(tx, uid)}
        stones = tombstones.recorded(tx, uid, sorted(oracle.stored(repository)))
        areas = [(one.name, pair) for one in branches for token in one.tokens for pair in staging.scan(tx, [token])]
    entries = oracle.contents(repository, {commit.metarange for commit in made.values()})
    past = {one.name: oracle.below(made, [one.head]) for one in branches}
    holding = oracle.held(repository, HoldKind.REF) | tagged
    prefixes = tuple(oracle.held(repository, HoldKind.PREFIX))

    def kept(path: str) -> bool:
        return path.startswith(prefixes) or any(one.holds(path) for one in keep)

    def current(branch: str, moment: datetime) -> set[tuple[str, str]]:
        """Path and address of all that was in its head at ``moment``, or in a commit since."""
        later = {name for name in past[branch] if made[name].created_at >= moment}
        heads = {one.head for one in branches if one.name == branch} | {p for name in later for p in made[name].parents}
        return {(one.path, one.address) for name in later | heads for one in entries[made[name].metarange]}

    def expires(one: RuleExpiry, branch: str, entry: Entry, *, committed: bool) -> bool:
        path, moment = one.rule.path_on(branch), now - one.span
        applies = one.kind is Kind.ALL or (one.kind is Kind.NONCURRENT) == committed
        if path is None or not applies or not entry.path.startswith(path):
            return False
        if max(entry.modified_at, oracle.named_at(entry)) >= moment:
            return False
        return one.kind is not Kind.NONCURRENT or (entry.path, entry.address) not in current(branch, moment)

    going, staying = set[str](), oracle.held(repository, HoldKind.ADDRESS)
    staying |= oracle.lately(repository, min(now, repository.clock()) - timedelta(days=1))
    for name, commit in made.items():
        on = [branch for branch in past if name in past[branch]]
        for entry in entries[commit.metarange]:
            held = not on or name in holding or kept(entry.path)
            lets_go = [any(expires(e, b, entry, committed=True) for e in retention.expiries) for b in on]
            (going if all(lets_go) and not held else staying).add(entry.address)
    for branch, (key, value) in areas:
        if value is not None:
            entry = decode_entry(key, value)
            lets_go = [any(expires(one, branch, entry, committed=False) for one in retention.expiries)]
            (going if all(lets_go) and not kept(entry.path) else staying).add(entry.address)
    for address, stone in stones.items():
        back = stone.restored_at is not None and stone.restored_at >= now - repository.core.ticket_life
        if back or stone.state not in (State.RESTORED, State.FAILED, State.CONDEMNED):
            staying.add(address)
    return (going - staying) & set(oracle.stored(repository))
