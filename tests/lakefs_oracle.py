"""What is garbage on the model of a lakeFS server, the slow and obvious way: from what the model itself has in memory.

Nothing is asked of the server, and nothing that desilt read is believed, but for holds and what came back from the
trash, which only desilt's records have.
"""

import base64
from datetime import UTC, datetime, timedelta

from desilt.domain.entry import AddressType
from desilt.domain.policy import Tags
from desilt.records import holds, removals
from desilt.records.holds import HoldKind
from desilt.runs.folder import TRASH
from desilt.testing.oracle import _fact, _period, below

MARGIN = timedelta(minutes=10)


class Oracle:
    """Of one repository: ``kept`` is the model's, ``ours`` is desilt's side of it."""

    def __init__(self, model, kept, ours):
        self.model, self.kept, self.ours = model, kept, ours

    # ---- what there is

    def stored(self):
        """Every object by address, and since when."""
        found = {}
        for batch in self.kept.place.store.list("data/"):
            found |= zip(batch["key"].to_pylist(), batch["modified_at"].to_pylist(), strict=True)
        return found

    def trash(self):
        """Addresses in the trash, by run."""
        found = {}
        for batch in self.kept.place.store.list(TRASH):
            for key in batch["key"].to_pylist():
                run, _, address = key.removeprefix(TRASH).partition("/")
                found.setdefault(run, set()).add(address)
        return found

    # ---- what holds

    def staged(self):
        """Of every branch, whatever bytes it has.

        The same as is committed there, address and all, is nothing that a server would ever tell of.
        """
        found = set()
        for branch in self.kept.branches.values():
            head = {path: self.inside(one) for path, one in self.kept.entries(branch.head).items()}
            changes = self.kept.changes(branch.name)
            for path, one in branch.staged.items():
                if one and (path in changes or self.inside(one) != head.get(path)):
                    found.add(self.inside(one))
        return found - {None}

    def committed(self, names):
        return {self.inside(one) for name in names for one in self.kept.entries(name).values()} - {None}

    def by_rules(self, *, tags):
        """The commits that the server's rules keep, in words: from each start alone. Tags and holds beside them.

        A hold on a prefix keeps every commit that has something below it.
        """
        default, of_branch = self.kept.rules
        commits = self.kept.commits
        main = {one.id: one.parents[0] if one.parents else None for one in commits.values()}
        heads = {branch.name: branch.head for branch in self.kept.branches.values()}
        found = set(heads.values())
        walks = [(head, main[head], of_branch.get(name, default)) for name, head in heads.items()]
        dangling = commits.keys() - set(main.values()) - set(heads.values())
        for child, parent, days in walks + [(one, one, default) for one in dangling]:
            while parent:
                if commits[child].created_at > self.model.clock() - timedelta(days=days):
                    found.add(parent)
                child, parent = parent, main[parent]
        prefixes = tuple(prefix.encode() for prefix in self.held(HoldKind.PREFIX))
        found |= {name for name in commits if any(path.startswith(prefixes) for path in self.kept.entries(name))}
        return found | self.held(HoldKind.REF) | (set(self.kept.tags.values()) if tags else set())

    def held(self, kind):
        with self.ours.records.read() as tx:
            every = holds.every(tx, self.ours.uid)
        return {one.value for one in every if one.kind is kind and one.counts(self.model.clock())}

    def back_since(self, since):
        """What came back from the trash since then."""
        with self.ours.records.read() as tx:
            return set(removals.restored_since(tx, self.ours.uid, since))

    # ---- what goes

    def collectable(self, commits=None):
        """By a run of gc: what neither these commits nor branches have, is not held, and old by both clocks."""
        names = self.kept.commits if commits is None else commits
        before = self.model.clock() - timedelta(seconds=self.model.grace) - MARGIN
        staying = self.committed(names) | self.staged() | self.held(HoldKind.ADDRESS) | self.back_since(before)
        return {
            address
            for address, at in self.stored().items()
            if address not in staying and at < before and named_at(address) < before
        }

    def expired(self, policy):
        """By a run of lifecycle: what every entry, in every commit, on every branch that reaches it, releases."""
        made, now = self.kept.commits, self.model.clock()
        heads = {branch.name: branch.head for branch in self.kept.branches.values()}
        past = {branch: below(made, [head]) for branch, head in heads.items()}
        current = {branch: set(map(_fact, self.kept.entries(head).values())) for branch, head in heads.items()}
        holding = self.held(HoldKind.REF) | (set(self.kept.tags.values()) if policy.tags is Tags.HOLD else set())
        prefixes = tuple(self.held(HoldKind.PREFIX))

        def goes(commit, entry):
            branches = [branch for branch in heads if commit in past[branch]]
            kept = any(keep.holds(entry.path) for keep in policy.keep) or entry.path.startswith(prefixes)
            if not branches or commit in holding or kept:
                return False
            return all(any(releases(rule, branch, entry) for rule in policy.rules) for branch in branches)

        def releases(rule, branch, entry):
            days = _period(rule, branch)
            applies = rule.enabled and days is not None and entry.path.startswith(rule.prefix)
            spared = rule.noncurrent_only and _fact(entry) in current[branch]
            younger = max(entry.modified_at, named_at(self.inside(entry)))
            return applies and not spared and younger < now - timedelta(days=days or 0)

        going, staying = set(), self.staged() | self.held(HoldKind.ADDRESS)
        for name in made:
            for entry in self.kept.entries(name).values():
                if self.inside(entry) is not None:
                    (going if goes(name, entry) else staying).add(self.inside(entry))
        grace = timedelta(seconds=self.model.grace)
        return (going - staying - self.back_since(now - grace)) & set(self.stored())

    def inside(self, entry):
        """An entry's address below the namespace, however it is written; None if it is elsewhere."""
        if entry.address_type is AddressType.RELATIVE:
            return entry.address
        shown = self.kept.place.shown
        return entry.address.removeprefix(shown) if entry.address.startswith(shown) else None


def named_at(address):
    """When an address was handed out, by its name."""
    raw = base64.b32hexdecode(address.rpartition("/")[2][:20].upper() + "====")
    return datetime.fromtimestamp(int.from_bytes(raw[:4]), UTC)
