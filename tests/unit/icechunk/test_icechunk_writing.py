"""The file ``repo`` and snapshot files written by us: what was to change has changed, all else is as it was."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.errors import Conflict, Damaged, NotReadBack
from desilt.icechunk.edits import backups, operations, repo_writing, snapshot_writing
from desilt.icechunk.edits.forward import NewTable, Old, Structs, Text, Vector, in_front
from desilt.icechunk.edits.repo_change import RepoChange, RepoOperation, expected
from desilt.icechunk.edits.repo_writing import changed
from desilt.icechunk.edits.snapshot_writing import with_parent
from desilt.icechunk.format import repo_info, states
from desilt.icechunk.format.buffer import root
from desilt.icechunk.format.container import HEADER, AssetKind, opened
from desilt.icechunk.format.ids import ROOT
from desilt.icechunk.layout import KINDS, kind_of
from desilt.objects import open_store

FIXTURE = (Path(__file__).parents[2] / "fixtures" / "icechunk-v2" / "repo" / "repo").read_bytes()
BACKUP = "repo.30708659685327.6Y9A4SVKBA8ZDP2W65QG"
NOW = 1_800_000_000_000_000
EXPIRED = RepoOperation.EXPIRED


def info_of(data):
    return repo_info.read(opened(data, AssetKind.REPO, "repo"))


def rows_of(data):
    """The log of operations: what, when, and which file was made by it."""
    table = root(opened(data, AssetKind.REPO, "repo").content)
    found = [
        (one.number(0, 1), one.number(2, 8), (one.content(3) or b"").decode())
        for one in table.tables(repo_info.UPDATES)
    ]
    return found, (table.content(repo_info.BEFORE) or b"").decode()


def made(change, data=FIXTURE, *, at=NOW, backup=BACKUP):
    return changed(data, change, at=at, backup=backup)


def chain(info):
    """Snapshots by their parents."""
    return {one.id: one.parent for one in info.snapshots}


def grandparent():
    """A snapshot whose parent has one too."""
    above = chain(info_of(FIXTURE))
    return next(name for name, parent in above.items() if parent and above[parent] and above[above[parent]] is None)


# ---- repo


def test_a_snapshot_gets_another_parent_and_remembers_the_logs_in_between():
    was, name = info_of(FIXTURE), grandparent()
    now = info_of(made(RepoChange(EXPIRED, {name: ROOT})))
    left_out = chain(was)[name]
    assert chain(now) == {**chain(was), name: ROOT}
    before, after = ({one.id: one for one in info.snapshots} for info in (was, now))
    assert after[name].pruned == (*before[left_out].pruned, left_out, *before[name].pruned)
    assert {**after, name: before[name]} == before
    assert replace(now, snapshots=was.snapshots) == was


def test_what_was_left_out_before_is_remembered_too_oldest_first():
    """r ← a ← b ← c ← d: first c is put upon r, then d."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    said = (("a", "r", ("x",)), ("b", "a", ()), ("c", "b", ()), ("d", "c", ()), ("r", None, ()))
    infos = [repo_info.SnapshotInfo(name, above, at, "", {}, pruned) for name, above, pruned in said]
    info = replace(info_of(FIXTURE), snapshots=tuple(infos), branches={"main": "d"}, tags={})
    first = expected(info, RepoChange(EXPIRED, {"c": "r"}))
    assert {one.id: one.pruned for one in first.snapshots}["c"] == ("x", "a", "b")
    second = expected(first, RepoChange(EXPIRED, {"d": "r"}, frozenset("abc")))
    assert {one.id: (one.parent, one.pruned) for one in second.snapshots} == {
        "d": ("r", ("x", "a", "b", "c")),
        "r": (None, ()),
    }


def test_one_that_is_edited_twice_keeps_what_it_took_over_the_first_time():
    """r ← a ← b ← c ← d: first d is put upon b, which stays for a while, then upon r."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    said = (("a", "r", ("x",)), ("b", "a", ()), ("c", "b", ()), ("d", "c", ()), ("r", None, ()))
    infos = [repo_info.SnapshotInfo(name, above, at, "", {}, pruned) for name, above, pruned in said]
    info = replace(info_of(FIXTURE), snapshots=tuple(infos), branches={"main": "d"}, tags={})
    first = expected(info, RepoChange(EXPIRED, {"d": "b"}, frozenset("c")))
    second = expected(first, RepoChange(EXPIRED, {"d": "r"}, frozenset("ab")))
    assert {one.id: one.pruned for one in second.snapshots} == {"d": ("x", "a", "b", "c"), "r": ()}


def test_snapshots_and_refs_go_and_names_of_tags_are_never_used_again():
    was, name = info_of(FIXTURE), grandparent()
    (tag,) = was.tags
    going = was.tags[tag]
    change = RepoChange(EXPIRED, branches=frozenset({"dev"}), tags=frozenset({tag}))
    now = info_of(made(change))
    assert now.branches == {"main": was.branches["main"]}
    assert now.tags == {}
    assert now.deleted_tags == was.deleted_tags | {tag}
    above = chain(now)
    taken = {going} - set(above.values()) - set(now.branches.values())
    again = info_of(made(RepoChange(RepoOperation.GARBAGE_COLLECTED, taken=frozenset(taken)), made(change)))
    assert chain(again) == {one: parent for one, parent in above.items() if one not in taken}
    assert taken
    assert name


def test_what_is_not_to_change_is_as_it_was_to_the_byte():
    was = opened(FIXTURE, AssetKind.REPO, "repo").content
    now = opened(made(RepoChange(EXPIRED, {grandparent(): ROOT})), AssetKind.REPO, "repo").content
    assert now.endswith(was)
    for slot in (repo_info.STATUS, repo_info.CONFIG, repo_info.METADATA):
        before, after = root(was).place(slot), root(now).place(slot)
        assert (before is None) == (after is None)
        if before is not None:
            assert len(was) - before == len(now) - after


def test_the_log_of_operations_gets_a_row_and_the_row_before_says_where_its_file_is():
    before, _ = rows_of(FIXTURE)
    after, left_out = rows_of(made(RepoChange(EXPIRED, {grandparent(): ROOT})))
    assert after == [(14, NOW, ""), (*before[0][:2], BACKUP), *before[1:]]
    assert left_out == ""
    assert rows_of(made(RepoChange(EXPIRED, {grandparent(): ROOT}), at=5))[0][0][1] == before[0][1] + 1


@pytest.mark.parametrize(("most", "names"), [(1, 0), (2, 1), (4, 3)])
def test_what_the_log_has_no_room_for_is_found_by_its_newest_file(monkeypatch, most, names):
    before, _ = rows_of(FIXTURE)
    monkeypatch.setattr(operations, "_most", lambda _: most)
    after, left_out = rows_of(made(RepoChange(EXPIRED, {grandparent(): ROOT})))
    assert len(after) == most
    assert left_out == (BACKUP if names == 0 else before[names][2])


def test_written_again_and_again_it_stays_what_it_is():
    data, was, name = FIXTURE, info_of(FIXTURE), grandparent()
    parents = [ROOT, chain(was)[name]]
    data = made(RepoChange(EXPIRED, {name: ROOT}))
    for number in range(20):
        data = made(RepoChange(EXPIRED), data, at=NOW + number, backup=f"repo.{number}")
    rows, _ = rows_of(data)
    assert chain(info_of(data)) == {**chain(was), name: parents[0]}
    assert [row[2] for row in rows[:4]] == ["", "repo.19", "repo.18", "repo.17"]
    assert len(data) < 4 * len(FIXTURE)


def impossible():
    """What cannot be, and what is said of it."""
    info, name = info_of(FIXTURE), grandparent()
    parent, main = chain(info)[name], info.branches["main"]
    return {
        "a loop with the root": (RepoChange(EXPIRED, {ROOT: name}), "does not descend from"),
        "a loop with the parent": (RepoChange(EXPIRED, {parent: name}), "does not descend from"),
        "a loop with itself": (RepoChange(EXPIRED, {name: name}), "does not descend from"),
        "a stranger": (RepoChange(EXPIRED, {"0" * 20: ROOT}), "is to get another parent"),
        "one that goes": (RepoChange(EXPIRED, {name: ROOT}, frozenset({name})), "needed|is to get another parent"),
        "the root goes": (RepoChange(EXPIRED, taken=frozenset({ROOT})), "is needed and cannot be taken"),
        "a tip goes": (RepoChange(EXPIRED, taken=frozenset({main})), "is needed"),
        "a parent goes": (RepoChange(EXPIRED, taken=frozenset({parent})), "is needed"),
    }


@pytest.mark.parametrize("what", impossible())
def test_what_would_be_no_history_is_refused(what):
    change, says = impossible()[what]
    with pytest.raises(Conflict, match=says):
        made(change)


def test_what_does_not_read_back_is_never_given_out(monkeypatch):
    change = RepoChange(EXPIRED, {grandparent(): ROOT})
    monkeypatch.setattr(repo_writing, "_snapshots", lambda table, *_: Vector([Old(one.at) for one in table.tables(4)]))
    with pytest.raises(NotReadBack, match="does not say what it should"):
        made(change)
    monkeypatch.undo()
    monkeypatch.setattr(repo_writing, "kept", lambda table, slot: None if slot == 5 else operations.kept(table, slot))
    with pytest.raises((NotReadBack, Damaged)):
        made(change)
    monkeypatch.undo()
    monkeypatch.setattr(repo_writing, "kept", lambda table, slot: None if slot == 9 else operations.kept(table, slot))
    with pytest.raises(NotReadBack):
        made(change)


def test_a_backup_is_called_as_the_library_calls_its_own():
    now = datetime(2026, 11, 18, 20, 19, 3, 329000, tzinfo=UTC)
    name = backups.name_at(now)
    assert name.startswith("repo.30708646856671.")  # as 2.3.0 did at that moment
    assert kind_of(f"overwritten/{name}") == "backup"
    assert KINDS["backup"]
    assert backups.name_at(now) != name
    store = open_store(f"memory://{uuid.uuid4().hex}")
    backups.put(store, name, b"what it was")
    backups.put(store, name, b"what it was")
    with pytest.raises(Conflict, match="is there already"):
        backups.put(store, name, b"something else")


# ---- a snapshot file of format 1


def test_twelve_bytes_of_a_snapshot_file_change_and_no_more(world):
    if world.version != 1:
        pytest.skip("a file of format 2 has no parent")
    names = [world.commit(f"commit {n}", a=[n] * 5, metadata={"n": n}) for n in range(3)]
    data = world.file(f"snapshots/{names[2]}")
    body = with_parent(data, names[2], names[1], ROOT)
    assert body[:HEADER] == data[:HEADER]
    was, now = (opened(one, AssetKind.SNAPSHOT, "it") for one in (data, body))
    assert sum(a != b for a, b in zip(was.content, now.content, strict=True)) in range(6, 13)
    assert states.read(now, names[2]) == replace(states.read(was, names[2]), parent=ROOT)
    (world.root / "snapshots" / names[2]).write_bytes(body)
    world.reopen()
    assert [one[0] for one in world.ancestry(names[2])] == [names[2], ROOT]
    assert world.chunks(names[2])
    with pytest.raises(Conflict, match="by now, and had"):
        with_parent(body, names[2], names[1], ROOT)


def test_a_file_of_format_2_is_not_given_a_parent():
    store = open_store(str(Path(__file__).parents[2] / "fixtures" / "icechunk-v2" / "repo"))
    one = next(one for one in info_of(FIXTURE).snapshots if states.fetch(store, one.id).format == 2)
    with pytest.raises(Conflict):
        with_parent(store.get(f"snapshots/{one.id}"), one.id, one.parent, ROOT)


def test_a_snapshot_that_does_not_read_back_is_never_given_out(world, monkeypatch):
    if world.version != 1:
        pytest.skip("a file of format 2 has no parent")
    first, second = (world.commit(f"commit {n}", a=[n]) for n in range(2))
    data = world.file(f"snapshots/{second}")
    monkeypatch.setattr(snapshot_writing, "reclosed", lambda data, _: data)
    with pytest.raises(NotReadBack):
        with_parent(data, second, first, ROOT)


# ---- a buffer in front of another


NAMES = st.text(max_size=6)
LEAVES = st.one_of(
    NAMES.map(lambda text: ("text", text)),
    st.lists(st.binary(min_size=12, max_size=12), max_size=3).map(lambda found: ("structs", found)),
    st.just(("old", None)),
)
NUMBERS = st.sampled_from([1, 2, 4, 8, 12]).flatmap(
    lambda width: st.binary(min_size=width, max_size=width).map(lambda raw: ("raw", raw))
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(st.integers(0, 6), st.one_of(NUMBERS, inner), max_size=5).map(lambda found: ("table", found)),
        st.lists(inner.filter(lambda one: one[0] in ("table", "text")), max_size=3)
        .filter(lambda found: len({one[0] for one in found}) < 2)
        .map(lambda found: ("vector", found)),
    ),
    max_leaves=12,
)
OLD = in_front(NewTable({0: b"12345678", 1: Text("what was there")}), b"")


def part(tree):
    kind, value = tree
    return {
        "text": lambda: Text(value),
        "structs": lambda: Structs(value),
        "old": lambda: Old(root(OLD).at),
        "raw": lambda: value,
        "table": lambda: NewTable({slot: part(one) for slot, one in value.items()}),
        "vector": lambda: Vector([part(one) for one in value]),
    }[kind]()


def compare(table, fields):
    """What a reader finds in ``table``."""
    assert {slot for slot in range(7) if table.has(slot)} == fields.keys()
    for slot, (kind, value) in fields.items():
        if kind == "raw":
            assert table.raw(slot, len(value)) == value
            if len(value) != 12:
                assert (table.at + table.fields[slot]) % len(value) == 0  # as readers in other languages want it
        elif kind == "text":
            assert table.text(slot) == value
        elif kind == "structs":
            assert table.structs(slot, 12) == value
        elif kind == "table":
            compare(table.table(slot), value)
        elif kind == "old":
            assert (table.table(slot).raw(0, 8), table.table(slot).text(1)) == (b"12345678", "what was there")
        elif value and value[0][0] == "text":
            assert table.texts(slot) == [one[1] for one in value]
        else:
            for there, (_, inner) in zip(table.tables(slot), value, strict=True):
                compare(there, inner)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.integers(0, 6), st.one_of(NUMBERS, TREES), max_size=6))
def test_what_is_written_in_front_is_read_back(fields):
    compare(root(in_front(part(("table", fields)), OLD)), fields)
