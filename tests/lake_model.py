"""Histories run on the lake and on a few dicts; both must tell the same story."""

import itertools
import tempfile
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from desilt.domain.entry import Entry, decode_path, encode_path, encode_prefix
from desilt.domain.history import merge_base
from desilt.errors import Dirty, MergeConflict, NotFound, NothingToCommit
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.testing import oracle

PLAIN = st.sampled_from(["a", "a/b", "a/c", "a//b", "a%2Fb", "b", "b/x/1", "b/x/2", "b/y", "é", "e\u0301", "z"])
ODD = st.sampled_from([decode_path(path) for path in (b"\x80", b"a/\xff", b"a\xff/b", b"b/x/\xed\xa0\x80")])
PATHS = st.one_of(PLAIN, PLAIN, PLAIN, ODD)
TEXTS = st.sampled_from(["", "one", "two", "three"])
NAMES = st.sampled_from(["dev", "test", "qa"])
Files = dict[str, Entry]


@dataclass
class ModelCommit:
    files: Files
    parents: tuple[str, ...]


@dataclass
class ModelBranch:
    head: str
    staged: dict[str, Entry | None] = field(default_factory=dict)


def overlay(files, staged):
    merged = {**files, **staged}
    return {path: entry for path, entry in merged.items() if entry is not None}


def same_content(left, right):
    if left is None or right is None:
        return left is right
    return (left.size, left.checksum) == (right.size, right.checksum)


class LakeModel(RuleBasedStateMachine):
    database_url = None  # set by the test

    @initialize()
    def begin(self):
        self.directory = tempfile.TemporaryDirectory()
        url = self.database_url() if self.database_url else f"sqlite://{self.directory.name}/lake.db"
        database = open_database(url, create=True)
        schema.create(database, storage="")
        ticks = itertools.count()

        self.passed = timedelta(0)

        def clock():
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(ticks)) + self.passed

        store = open_store(f"memory://{uuid.uuid4().hex}")
        store.clock = clock
        lake = Lake(database, store, clock=clock, raggedness=3)
        self.repo = lake.create_repository("model")
        first = self.repo.resolve("main").commit.id
        self.commits = {first: ModelCommit({}, ())}
        self.branches = {"main": ModelBranch(first)}
        self.bodies = {}

    def teardown(self):
        if hasattr(self, "repo"):
            for name in self.branches:
                self.check(name)
            self.check_soundness()
            self.repo.database.close()
            self.directory.cleanup()

    # ---- what may happen

    @rule(data=st.data(), path=PATHS, text=TEXTS)
    def put(self, data, path, text):
        name = self.any_branch(data)
        entry = self.repo.put(name, path, text.encode())
        self.bodies[entry.address] = text
        self.branches[name].staged[path] = entry

    @rule(data=st.data(), path=PATHS)
    def remove(self, data, path):
        name = self.any_branch(data)
        if path in self.files(name):
            self.repo.remove(name, path)
            self.branches[name].staged[path] = None
        else:
            with pytest.raises(NotFound):
                self.repo.remove(name, path)

    @rule(data=st.data(), source=PATHS, goal=PATHS, move=st.booleans())
    def copy_or_move(self, data, source, goal, move):
        name = self.any_branch(data)
        act = self.repo.move if move else lambda branch, a, b: self.repo.copy(branch, a, branch, b)
        if source not in self.files(name):
            with pytest.raises(NotFound):
                act(name, source, goal)
            return
        before = self.files(name)[source]
        entry = act(name, source, goal)
        assert entry.address == before.address
        if move:
            self.branches[name].staged[source] = None
        self.branches[name].staged[goal] = entry

    @rule(data=st.data(), source=PATHS, goal=PATHS)
    def copy_across(self, data, source, goal):
        origin, name = self.any_branch(data), self.any_branch(data)
        if origin != name and source in self.files(origin):
            entry = self.repo.copy(origin, source, name, goal)
            self.bodies[entry.address] = self.bodies[self.files(origin)[source].address]
            self.branches[name].staged[goal] = entry

    @rule(data=st.data())
    def commit(self, data):
        name = self.any_branch(data)
        branch, files = self.branches[name], self.files(name)
        if files == self.commits[branch.head].files:
            with pytest.raises(NothingToCommit):
                self.repo.commit(name, "nothing")
            branch.staged = {}
            return
        self.moved(name, self.repo.commit(name, "a commit"), files)
        branch.staged = {}

    @rule(data=st.data(), name=NAMES)
    def branch_off(self, data, name):
        source = self.any_branch(data)
        if name not in self.branches:
            self.repo.create_branch(name, source)
            self.branches[name] = ModelBranch(self.branches[source].head)

    @rule(name=NAMES)
    def delete_branch(self, name):
        if name in self.branches:
            self.repo.delete_branch(name, force=True)
            del self.branches[name]

    @rule(data=st.data(), prefix=st.sampled_from(["", "a", "a/", "b/x/", "nothing"]))
    def reset_prefix(self, data, prefix):
        name = self.any_branch(data)
        staged = self.branches[name].staged
        gone = [path for path in staged if path.startswith(prefix)]
        assert self.repo.reset(name, prefix=prefix) == len(gone)
        self.branches[name].staged = {path: entry for path, entry in staged.items() if path not in gone}

    @rule(data=st.data())
    def reset_all(self, data):
        name = self.any_branch(data)
        assert self.repo.reset(name) == len(self.branches[name].staged)
        self.branches[name].staged = {}

    @rule(data=st.data(), strategy=st.sampled_from([None, "source-wins", "dest-wins"]))
    def merge(self, data, strategy):
        source, name = self.any_branch(data), self.any_branch(data)
        theirs, ours = self.branches[source].head, self.branches[name].head
        if self.branches[name].staged:
            with pytest.raises(Dirty):
                self.repo.merge(source, name, strategy=strategy)
            return
        if theirs in self.ancestors(ours):
            assert self.repo.merge(source, name, strategy=strategy) is None
            return
        base = self.commits[self.base(theirs, ours)].files
        files, conflicts = three_way(base, self.commits[theirs].files, self.commits[ours].files, strategy)
        if conflicts:
            with pytest.raises(MergeConflict) as raised:
                self.repo.merge(source, name)
            assert raised.value.paths == conflicts
            return
        self.moved(name, self.repo.merge(source, name, strategy=strategy), files, theirs)

    @rule(data=st.data())
    def revert(self, data):
        name = self.any_branch(data)
        head = self.branches[name].head
        reverted = data.draw(
            st.sampled_from([one for one in self.commits if one in self.ancestors(head)]), label="reverted"
        )
        parents = self.commits[reverted].parents
        if not parents or self.branches[name].staged:
            return
        base, before = self.commits[reverted].files, self.commits[parents[0]].files
        files, conflicts = three_way(base, before, self.commits[head].files, None)
        if conflicts:
            with pytest.raises(MergeConflict):
                self.repo.revert(name, reverted, parent=1)
        elif files == self.commits[head].files:
            with pytest.raises(NothingToCommit):
                self.repo.revert(name, reverted, parent=1)
        else:
            self.moved(name, self.repo.revert(name, reverted, parent=1), files)

    @rule(data=st.data(), prefix=st.sampled_from(["", "a", "a/", "b/", "b/x"]), after=st.one_of(st.just(""), PATHS))
    def list_folded(self, data, prefix, after):
        self.check_folded(self.any_branch(data), prefix, after)

    def check_folded(self, name, prefix, after):
        wanted = []
        for path in sorted(self.files(name), key=encode_path):
            cut = path.find("/", len(prefix))
            folded = path if cut < 0 else path[: cut + 1]
            past = encode_prefix(path) > encode_prefix(after)
            if path.startswith(prefix) and past and not (cut >= 0 and after.startswith(folded)):
                wanted.append(folded)
        found = [one.path for one in self.repo.list(name, prefix, delimiter="/", after=after)]
        assert found == list(dict.fromkeys(wanted))

    @rule(data=st.data())
    def diff_any_two(self, data):
        left, right = (data.draw(st.sampled_from(list(self.commits)), label="commit") for _ in range(2))
        before, after = self.commits[left].files, self.commits[right].files
        wanted = {
            path: (before.get(path), after.get(path))
            for path in before.keys() | after.keys()
            if before.get(path) != after.get(path)
        }
        assert {change.path: (change.before, change.after) for change in self.repo.diff(left, right)} == wanted

    # ---- what must hold

    @invariant()
    def branches_are_where_they_should_be(self):
        if hasattr(self, "repo"):
            assert {branch.name: branch.head for branch in self.repo.branches()} == {
                name: branch.head for name, branch in self.branches.items()
            }

    @precondition(lambda self: hasattr(self, "repo"))
    @rule()
    def garbage_is_what_nothing_holds(self):
        held = {entry.address for commit in self.commits.values() for entry in commit.files.values()}
        held |= {entry.address for branch in self.branches.values() for entry in branch.staged.values() if entry}
        assert set(oracle.garbage(self.repo)) == set(self.bodies) - held

    @rule(data=st.data())
    def look(self, data):
        self.check(self.any_branch(data))

    def check(self, name):
        files, committed = self.files(name), self.commits[self.branches[name].head].files
        assert {entry.path: entry for entry in self.repo.list(name)} == files
        assert {entry.path: entry for entry in self.repo.list(f"{name}@")} == committed
        for path, entry in files.items():
            assert self.repo.stat(name, path) == entry
            assert b"".join(self.repo.get(name, path)).decode() == self.bodies[entry.address]
        for prefix in ("", "a", "b/"):
            self.check_folded(name, prefix, "")
        wanted = {path for path in files.keys() | committed.keys() if files.get(path) != committed.get(path)}
        assert {change.path for change in self.repo.uncommitted(name)} == wanted

    def check_soundness(self):
        found = check(self.repo, deep=True)
        assert found.sound, found.findings
        assert {one.about["address"] for one in found.of("unreferenced-object")} == set(oracle.garbage(self.repo))

    # ---- the model

    def any_branch(self, data):
        return data.draw(st.sampled_from(sorted(self.branches)), label="branch")

    def files(self, name):
        branch = self.branches[name]
        return overlay(self.commits[branch.head].files, branch.staged)

    def moved(self, name, commit, files, *more_parents):
        branch = self.branches[name]
        self.commits[commit.id] = ModelCommit(files, (branch.head, *more_parents))
        branch.head = commit.id
        assert commit.parents == self.commits[commit.id].parents

    def ancestors(self, commit):
        found, todo = set(), [commit]
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                todo += self.commits[one].parents
        return found

    def base(self, left, right):
        """The only sensible base; where two are equally good, the one the lake takes, if it is one of them."""
        common = self.ancestors(left) & self.ancestors(right)
        best = [one for one in common if not any(one in self.ancestors(other) - {other} for other in common)]
        with self.repo.database.read() as tx:
            from desilt.lake import commits

            chosen = merge_base(commits.fetching(tx, self.repo.uid), left, right).id
        assert chosen in best
        return chosen


def three_way(base, source, destination, strategy):
    files, conflicts = dict(destination), []
    for path in sorted(base.keys() | source.keys() | destination.keys(), key=encode_path):
        before, theirs, ours = base.get(path), source.get(path), destination.get(path)
        if theirs == before:
            continue
        if ours != before:
            if same_content(theirs, ours) or strategy == "dest-wins":
                continue
            if strategy is None:
                conflicts.append(path)
        files[path] = theirs and replace(theirs, path=path)
    return {path: entry for path, entry in files.items() if entry is not None}, conflicts
