"""Edits of format 2 where the store compares: in memory, by files that the library wrote, on every Python."""

import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from desilt.clock import system_clock
from desilt.domain.expiry import Expiry
from desilt.errors import Conflict, FencedOff, OtherRecords, RefsMoved, StorageFailed
from desilt.icechunk.core import IcechunkCore
from desilt.icechunk.edits.editor import IcechunkEditor
from desilt.icechunk.edits.forward import NewTable, Structs, Text, Vector, in_front
from desilt.icechunk.edits.operations import kept
from desilt.icechunk.edits.repo_change import RepoChange, RepoOperation
from desilt.icechunk.edits.repo_writing import changed
from desilt.icechunk.format import repo_info
from desilt.icechunk.format.container import AssetKind, closed, opened
from desilt.icechunk.format.ids import ROOT
from desilt.icechunk.history import history
from desilt.icechunk.seen import look
from desilt.objects import open_store
from desilt.objects.conditional import ReadObject
from desilt.records import edits, elsewhere, holds, locks, revisions
from desilt.records.holds import Hold, HoldKind
from desilt.records.opening import open_records
from desilt.repository import lease
from desilt.repository.editor import Edits, GoingRef
from desilt.repository.gate import Reliance
from desilt.repository.graced import keeper
from desilt.repository.graph import graph_of
from desilt.testing.faults import Proxy

FIXTURE = Path(__file__).parents[2] / "fixtures" / "icechunk-v2" / "repo"


class Store(Proxy):
    """Memory in which something happens right before a conditional put, or to its answer."""

    def __init__(self, store):
        self.real, self.before, self.after, self.answers, self.marks = store, [], [], [], []
        self.careless = False  # takes conditions, and never looks at them
        super().__init__(store, None)

    def __getattr__(self, name):
        return getattr(self._real, name)

    @property
    def conditional(self):
        return self

    def read(self, key):
        found = self.real.read(key)
        if self.after and key == "repo":
            self.after.pop()()
        return ReadObject(found.key, found.body, self.marks.pop()) if self.marks and key == "repo" else found

    def put_over(self, seen, body):
        if self.careless:
            return self.real.put(seen.key, [body]) > 0
        if seen.key != "repo":
            return self.real.put_over(seen, body)
        if self.before:
            self.before.pop(0)()
        done = self.real.put_over(seen, body)
        if self.answers and isinstance(answer := self.answers.pop(0), Exception):
            raise answer
        return done


class Scene:
    """The library's fixture in memory, and an editor beside it."""

    def __init__(self, place):
        memory = open_store(f"memory://{uuid.uuid4().hex}")
        for path in FIXTURE.rglob("*"):
            if path.is_file():
                memory.put(str(path.relative_to(FIXTURE)), [path.read_bytes()])
        self.store, self.paused = Store(memory), []
        records = open_records(f"sqlite://{place}/records.db")
        name = elsewhere.name_of(records)
        self.core = IcechunkCore(self.store, 2, records, name, system_clock, "uid", "secret")
        elsewhere.secret_of(records, "uid", "memory://it", now=system_clock())
        self.editor = IcechunkEditor(self.core, pause=self.paused.append)
        with records.write() as tx:
            self.lock = locks.take(tx, "uid", run="run", owner="me")
        self.now = system_clock()
        self.since = look(self.core, self.now).seen.revision

    @property
    def info(self):
        return repo_info.read(opened(self.store.get("repo"), AssetKind.REPO, "repo"))

    @property
    def reliance(self):
        return Reliance(self.now, self.now)

    def young(self):
        """A cut that leaves but the newest snapshot of main young."""
        found = history(self.store).seen
        return Expiry(found.commits[dict(self.info.branches)["main"]].created_at, mode="v2")

    def wanted(self, wish):
        decided = []

        def decide(seen):
            found = wish.decide(graph_of(seen))
            decided.append(seen)
            tags = {tag.name: tag for tag in seen.tags}
            going = [
                GoingRef(ref.kind, ref.name, ref.name if ref.kind == "branch" else tags[ref.name].uid, ref.target, why)
                for ref, why in found.deleted_refs.items()
            ]
            parents = [(edit.id, edit.old_parents, edit.new_parents) for edit in found.edits]
            return Edits(parents, going, released=found.released)

        return decide, decided

    def edit(self, wish=None):
        decide, decided = self.wanted(wish or self.young())
        seen, fates = self.editor.edit(self.lock, self.since, self.reliance, decide)
        assert seen is decided[-1]
        return decided, fates

    def without_refs(self):
        """Of all refs only main is left; the one snapshot that nothing reaches then."""
        seen = look(self.core, self.now).seen
        going = [GoingRef("branch", one.name, one.uid, one.head, "") for one in seen.branches]
        going += [GoingRef("tag", one.name, one.uid, one.target, "") for one in seen.tags]
        self.editor.delete_refs(self.lock, "run", going, self.since, self.reliance)
        seen = look(self.core, self.now).seen
        (lost,) = seen.commits.keys() - seen.below(seen.tips)
        return lost

    def backups(self):
        return {key for batch in self.store.list("overwritten/repo.") for key in batch["key"].to_pylist()}

    def others_tag(self, name, target):
        """Somebody else's change: a tag that is there by now, at ``target``, and a row in the log."""
        info = self.info
        index, targets = [one.id for one in info.snapshots], {**info.tags, name: target}
        tags = [NewTable({0: Text(one), 1: index.index(targets[one]).to_bytes(4, "little")}) for one in sorted(targets)]
        self.store.put("repo", [rebuilt(self, repo_info.TAGS, Vector(tags))])


def rebuilt(scene, slot, part):
    """The file with another part."""
    asset = opened(scene.store.get("repo"), AssetKind.REPO, "repo")
    table = repo_info.root(asset.content)
    fields = {one: kept(table, one) for one in range(1, repo_info.REPO_SLOTS)}
    return closed(AssetKind.REPO, 2, in_front(NewTable({**fields, 0: table.raw(0, 1), slot: part}), asset.content))


@pytest.fixture
def scene(place):
    made = Scene(place)
    yield made
    made.core.records.close()


def line(info, name):
    above = {one.id: one.parent for one in info.snapshots}
    found = [name]
    while above[found[-1]]:
        found.append(above[found[-1]])
    return found


def test_it_is_one_write_after_a_backup(scene):
    before, data, kept_before = scene.info, scene.store.get("repo"), scene.backups()
    scene.edit()
    now = scene.info
    assert line(now, now.branches["main"]) == [now.branches["main"], ROOT]
    (backup,) = scene.backups() - kept_before
    assert scene.store.get(backup) == data
    assert now.branches == before.branches
    assert len(now.snapshots) < len(before.snapshots)
    assert scene.paused == []


def test_done_again_nothing_is_written(scene):
    scene.edit()
    data, backups = scene.store.get("repo"), scene.backups()
    scene.edit()
    assert (scene.store.get("repo"), scene.backups()) == (data, backups)


def test_where_somebody_tags_in_the_last_moment_it_is_decided_again(scene):
    gone = line(scene.info, scene.info.branches["main"])[1]
    scene.store.before = [lambda: scene.others_tag("rescue", gone)]
    decided, _ = scene.edit()
    assert len(decided) == 2
    assert scene.paused == [0]
    assert scene.info.tags["rescue"] == gone
    assert gone in {one.id for one in scene.info.snapshots}


def test_nothing_is_decided_on_anything_but_what_is_put_over(scene):
    scene.store.after = [lambda: scene.others_tag("new", ROOT)]
    decided, _ = scene.edit()
    assert (len(decided), scene.paused) == (1, [0])
    assert scene.info.tags["new"] == ROOT


def test_where_refs_never_rest_it_gives_up_and_has_changed_nothing(scene):
    scene.store.before = [lambda n=n: scene.others_tag(f"t{n}", ROOT) for n in range(100)]
    was = scene.info.snapshots
    with pytest.raises(RefsMoved):
        scene.edit()
    assert scene.info.snapshots == was
    assert scene.paused == list(range(20))


def test_a_wrong_mark_changes_nothing_and_is_tried_again(scene):
    scene.store.marks = [("never", "told")]
    decided, _ = scene.edit()
    assert (len(decided), scene.paused) == (2, [0])
    assert line(scene.info, scene.info.branches["main"])[1:] == [ROOT]


def test_a_store_that_never_looks_at_conditions_is_not_trusted_with_history(scene):
    before, scene.store.careless = scene.store.get("repo"), True
    with pytest.raises(StorageFailed, match="If-Match"):
        scene.edit()
    assert scene.store.get("repo") == before


def test_an_answer_that_was_lost_is_found_out(scene):
    scene.store.answers = [StorageFailed("lost")]
    decided, _ = scene.edit()
    assert (len(decided), scene.paused) == (1, [])
    assert line(scene.info, scene.info.branches["main"])[1:] == [ROOT]


def test_what_somebody_holds_in_the_last_moment_is_decided_again(scene):
    gone = line(scene.info, scene.info.branches["main"])[1]

    def hold():
        with scene.core.records.write() as tx:
            number = revisions.order(tx, "uid", now=system_clock())
            holds.add(tx, "uid", Hold("h1", HoldKind.REF, gone, "because", system_clock(), None, number))

    put_new = scene.store.real.put_new
    scene.store.put_new = lambda key, body: (hold() if not scene.paused else None, put_new(key, body))[1]
    decided, _ = scene.edit()
    assert len(decided) == 2
    assert gone in {one.id for one in scene.info.snapshots}


def test_what_somebody_holds_leaves_no_list_whatever_is_wanted(scene):
    """Nor does what it descends from."""
    below = line(scene.info, scene.info.branches["main"])
    top, gone, root = below[0], below[1:-1], below[-1]
    with scene.core.records.write() as tx:
        number = revisions.order(tx, "uid", now=system_clock())
        holds.add(tx, "uid", Hold("h1", HoldKind.REF, gone[0], "because", system_clock(), None, number))

    def decide(seen):
        assert seen.commits.keys() >= set(below)
        return Edits([(top, (gone[0],), (root,))], [], released=frozenset(gone))

    scene.editor.edit(scene.lock, scene.since, scene.reliance, decide)
    assert {one.id for one in scene.info.snapshots} >= set(below)
    assert {one.id: one.parent for one in scene.info.snapshots}[top] == root


def test_an_edit_is_on_record_so_that_plans_from_before_are_refused(scene):
    with scene.core.records.read() as tx:
        assert edits.last(tx, "uid") == 0
    scene.edit()
    with scene.core.records.read() as tx:
        assert edits.last(tx, "uid") > scene.since.number


def test_whoever_has_other_records_than_those_that_count_writes_nothing(scene, place):
    others = open_records(f"sqlite://{place}/others.db")
    core = replace(scene.core, records=others, records_name=elsewhere.name_of(others))
    elsewhere.secret_of(others, "uid", "memory://it", now=system_clock())
    lease.take(scene.store.real, "", keeper(core), system_clock())
    data = scene.store.get("repo")
    with pytest.raises(OtherRecords):
        scene.edit()
    assert scene.store.get("repo") == data
    others.close()


def test_whoever_lost_the_lock_writes_nothing(scene):
    data = scene.store.get("repo")
    with scene.core.records.write() as tx:
        locks.release(tx, scene.lock)
    with pytest.raises(FencedOff):
        scene.edit()
    assert scene.store.get("repo") == data


@pytest.mark.parametrize("state", [1, 2])
def test_a_repository_that_is_not_online_is_left_alone(scene, state):
    closed_one = rebuilt(scene, repo_info.STATUS, NewTable({0: bytes([state]), 1: bytes(8)}))
    scene.store.put("repo", [closed_one])
    with pytest.raises(Conflict, match=r"this Icechunk repository is (read-only|offline); set its status"):
        scene.edit()
    assert scene.store.get("repo") == closed_one


def test_tags_stay_where_deleting_them_is_switched_off(scene):
    scene.store.put("repo", [rebuilt(scene, repo_info.OFF, Structs([b"\x04\x00", b"\x05\x00"]))])
    assert scene.info.switched_off == {4, 5}
    before = scene.store.get("repo")
    with pytest.raises(Conflict, match="deleting tags is switched off"):
        scene.without_refs()
    scene.edit()
    assert scene.info.tags
    assert scene.info.switched_off == {4, 5}
    assert before != scene.store.get("repo")


def test_main_never_goes_and_other_refs_do_where_they_are_as_they_were_seen(scene):
    seen = look(scene.core, scene.now).seen
    going = [GoingRef("branch", one.name, one.uid, one.head, "") for one in seen.branches]
    going += [GoingRef("tag", one.name, one.uid, one.target, "") for one in seen.tags]
    going += [GoingRef("branch", "dev", "dev", ROOT, "")]
    (tag,) = scene.info.tags
    fates = scene.editor.delete_refs(scene.lock, "run", going[:-1], scene.since, scene.reliance)
    assert fates == {"dev": "deleted", "main": "kept: it is the default branch, which the library lets nobody delete",
                     tag: "deleted"}  # fmt: skip
    assert (set(scene.info.branches), scene.info.tags) == ({"main"}, {})
    assert tag in scene.info.deleted_tags
    assert scene.editor.delete_refs(scene.lock, "run", going[-1:], scene.since, scene.reliance) == {"dev": "deleted"}


def test_a_branch_that_moved_is_kept(scene):
    going = [GoingRef("branch", "dev", "dev", ROOT, "")]
    fates = scene.editor.delete_refs(scene.lock, "run", going, scene.since, scene.reliance)
    assert fates == {"dev": "kept: it has moved since"}
    assert "dev" in scene.info.branches


def test_snapshots_that_nothing_reaches_are_taken_and_no_others(scene):
    every = {one.id for one in scene.info.snapshots}
    lost = {scene.without_refs()}
    scene.editor.take(scene.lock, "run", sorted(every), scene.since, scene.now, None)
    assert {one.id for one in scene.info.snapshots} == every - lost
    assert scene.editor.there(sorted(every)) == every - lost


def test_what_a_hold_that_lapsed_lately_held_is_not_taken(scene):
    lost = scene.without_refs()
    with scene.core.records.write() as tx:
        number, made = revisions.order(tx, "uid", now=scene.now), scene.now - timedelta(days=9)
        holds.add(tx, "uid", Hold("h1", HoldKind.REF, lost, "because", made, scene.now - timedelta(hours=1), number))
    scene.editor.take(scene.lock, "run", [lost], scene.since, scene.now, scene.now - timedelta(days=1))
    assert scene.editor.there([lost]) == {lost}
    scene.editor.take(scene.lock, "run", [lost], scene.since, scene.now, scene.now - timedelta(minutes=1))
    assert scene.editor.there([lost]) == set()


def test_a_change_of_others_is_never_undone(scene):
    """What somebody wrote between our reading and our write is in what we write, or we do not write."""
    gone = line(scene.info, scene.info.branches["main"])[1]
    data = scene.store.get("repo")
    other = changed(
        data, RepoChange(RepoOperation.BRANCH_DELETED, branches=frozenset({"dev"})), at=1, backup="repo.1.X"
    )
    scene.store.before = [lambda: scene.store.put("repo", [other])]
    scene.edit()
    assert "dev" not in scene.info.branches
    assert gone not in {one.id for one in scene.info.snapshots}
