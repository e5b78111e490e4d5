"""A check of a repository: each kind of damage is made for real, and found; nothing else is."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from desilt.domain.entry import AddressType, Entry
from desilt.lake import fsck
from desilt.lake.fsck import check
from desilt.records import removals as tombstones
from desilt.records.removals import Tombstone
from desilt.repository import findings
from desilt.sstable.values import write_metarange
from desilt.testing import oracle
from words import collect as take
from words import committed, forget_files, reparent, root, seal, stage, tables, write

MANY = {f"path/{number:03}": str(number) for number in range(40)}  # several ranges, as the fixtures cut them


@pytest.fixture
def damage(repo, unsound):  # noqa: ARG001
    return Damage(repo)


class Damage:
    """What disks, people and bugs do. A store has no way to remove; its dictionary has."""

    def __init__(self, repo):
        self.repo, self.stored = repo, repo.store._objects

    def key(self, name):
        """Of a table by its id, else of an object by its address."""
        return self.repo.prefix + (name if "/" in name else f"_lakefs/{name}")

    def remove(self, name):
        del self.stored[self.key(name)]

    def alter(self, name, change):
        body, at = self.stored[self.key(name)]
        self.stored[self.key(name)] = change(body), at

    def swap(self, one, other):
        one, other = self.key(one), self.key(other)
        self.stored[one], self.stored[other] = self.stored[other], self.stored[one]

    def sql(self, statement, *values):
        with self.repo.database.write() as tx:
            assert tx.execute(statement, *values) > 0


def flip(at=20):
    return lambda body: body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]


def kinds(found):
    return dict(found.counts)


def only(found, kind):
    """The one finding there is, which is of this kind."""
    assert kinds(found) == {kind: 1}
    (one,) = found.findings
    assert one.kind == kind
    return one


def ranges(repo, ref="main"):
    return [listed.id for listed in repo.ranges.metarange(repo.resolve(ref).commit.metarange)]


def address(repo, path, ref="main"):
    return repo.stat(ref, path).address


def condemn(repo, *addresses):
    with repo.database.write() as tx:
        tombstones.condemn(tx, repo.uid, [Tombstone(one, "run-7", "old-logs", repo.clock()) for one in addresses])


# ---- what is sound


def test_an_empty_repository_is_sound(repo):
    found = check(repo)
    assert found.sound
    assert (found.findings, found.left_out) == ((), ())
    assert found.totals == fsck.LookedAt(commits=1)


def test_a_repository_that_has_seen_everything_is_sound(repo):
    committed(repo, "main", **MANY)
    repo.create_branch("dev", "main")
    repo.remove("dev", "path/007")
    committed(repo, "dev", **{"path/001": "changed", "other": ""})
    repo.merge("dev", "main")
    repo.create_tag("v1", "main")
    repo.copy("main", "path/002", "main", "copy")
    repo.stage("main", "far", "s3://elsewhere/x", size=3, checksum="?")
    write(repo, "main", staged="1", both="1")
    seal(repo, "main")
    write(repo, "main", staged="2")
    repo.remove("main", "both")
    given = repo.physical_address("dev", "direct")
    repo.store.put(repo.prefix + given.ticket.address, [b"direct"])
    repo.link("dev", "direct", given.token)
    before = everything(repo)
    found = check(repo, deep=True)
    assert found.sound
    assert (found.findings, found.left_out) == ((), ())
    stored = oracle.stored(repo)
    assert (found.totals.commits, found.totals.objects, found.totals.bytes) == (4, len(stored), sum(stored.values()))
    assert found.totals.tables == len({key for key in repo.store._objects if "/_lakefs/" in key})
    assert found.totals.outside == 1
    assert everything(repo) == before


def everything(repo):
    tables = "commits", "branches", "sealed", "tags", "staging", "tickets", "tombstones", "repositories"
    with repo.database.read() as tx:
        return dict(repo.store._objects), [sorted(map(repr, tx.rows(f"SELECT * FROM {table}"))) for table in tables]


@pytest.mark.usefixtures("unsound")
def test_two_repositories_of_a_lake_are_checked_apart(lake, repo):
    other = lake.create_repository("other")
    committed(repo, "main", a="1")
    write(other, "main", b="2")
    Damage(other).remove(address(other, "b"))
    assert (check(repo).findings, kinds(check(other))) == ((), {"missing-object": 1})


def test_shared_ranges_are_read_once(repo, monkeypatch):
    committed(repo, "main", **MANY)
    for number in range(5):
        committed(repo, "main", **{"path/000": f"again {number}"})
    read, real = [], repo.store.get
    monkeypatch.setattr(repo.store, "get", lambda key, **how: read.append(key) or real(key, **how))
    found = check(repo)
    read = [key for key in read if "/_lakefs/" in key]
    assert len(read) == len(set(read)) == found.totals.tables
    assert found.totals.entries < 6 * len(MANY)


# ---- commits


def test_a_branch_at_a_missing_commit(repo, damage):
    damage.sql("UPDATE branches SET head = ?", "f" * 64)
    found = check(repo)
    assert kinds(found) == {"missing-commit": 1, "dangling-commit": 1}
    assert found.of("missing-commit")[0].about == {"ref": "main", "commit": "f" * 64}
    assert not found.sound


def test_a_tag_at_a_missing_commit(repo, damage):
    repo.create_tag("v1", "main")
    damage.sql("UPDATE tags SET target = ?", "f" * 64)
    assert only(check(repo), "missing-commit").about["ref"] == "v1"


@pytest.mark.parametrize("reached", [True, False])
def test_a_missing_parent_reached_by_a_ref_or_not(repo, damage, reached):
    repo.create_branch("dev", "main")
    parent = committed(repo, "dev", a="1")
    child = committed(repo, "dev", a="2")
    if not reached:
        repo.delete_branch("dev")
    damage.sql("DELETE FROM commits WHERE id = ?", parent.id)
    found = check(repo)
    assert kinds(found) == {"missing-rows": 1, "missing-commit": 1} | ({} if reached else {"dangling-commit": 1})
    assert found.of("missing-commit")[0].about == {"commit": child.id, "parent": parent.id}
    assert "unreferenced" in found.left_out[0]  # the missing commit may have held anything


def test_a_commit_whose_row_cannot_be_read_hides_no_other(repo, damage):
    bad = committed(repo, "main", a="1")
    committed(repo, "main", b="2")
    damage.sql("UPDATE commits SET parents = ? WHERE id = ?", "[", bad.id)
    damage.remove(address(repo, "b"))
    found = check(repo)
    assert found.of("corrupt-commit")[0].about == {"commit": bad.id}
    assert found.counts["missing-object"] == 1
    assert found.totals.commits == 3
    assert "unreferenced" in found.left_out[0]


def test_a_commit_that_is_not_later_than_its_parent(repo, damage):
    parent = committed(repo, "main", a="1")
    child = committed(repo, "main", a="2")
    damage.sql(
        "UPDATE commits SET created_at = (SELECT created_at FROM commits WHERE id = ?) WHERE id = ?",
        *(parent.id, child.id),
    )
    assert only(check(repo), "commit-time").about == {"commit": child.id, "parent": parent.id}


def test_a_generation_that_is_not_larger_than_the_parents(repo, damage):
    parent = committed(repo, "main", a="1")
    child = committed(repo, "main", a="2")
    damage.sql("UPDATE commits SET generation = ? WHERE id = ?", parent.generation, child.id)
    assert only(check(repo), "generation").about == {"commit": child.id, "parent": parent.id}


def test_commits_that_no_ref_reaches_are_told(repo):
    repo.create_branch("dev", "main")
    lost = committed(repo, "dev", a="1")
    repo.delete_branch("dev")
    found = check(repo)
    assert only(found, "dangling-commit").about == {"commit": lost.id}
    assert found.sound


# ---- history that was edited


def shortened(repo):
    """A commit that was hidden from main, the one that is kept, and a first one; the hidden one is collected."""
    hidden = committed(repo, "main", a="1")
    kept = committed(repo, "main", a="2")
    reparent(repo, kept, root(repo))
    take(repo, hidden)
    return hidden, kept


def test_edited_history_and_collected_commits_are_sound(repo):
    shortened(repo)
    found = check(repo)
    assert found.sound
    assert kinds(found) == {"unreferenced-object": 1, "unreferenced-table": 2}  # what the collected one had


def test_an_abandoned_commit_is_a_fact_until_it_is_collected(repo):
    hidden = committed(repo, "main", a="1")
    reparent(repo, committed(repo, "main", a="2"), root(repo))
    assert only(check(repo), "dangling-commit").about == {"commit": hidden.id}


def test_a_parent_that_was_collected_is_missing_as_ever(repo, damage):
    hidden, kept = shortened(repo)
    damage.sql("UPDATE commits SET parents = was, was = NULL WHERE id = ?", kept.id)
    found = check(repo)
    assert found.of("missing-commit")[0].about == {"commit": kept.id, "parent": hidden.id}
    assert "was collected by run run-9" in found.of("missing-commit")[0].fact
    assert "unreferenced" in found.left_out[0]


@pytest.mark.parametrize(
    ("statement", "ref"), [("UPDATE branches SET head = ?", "main"), ("UPDATE tags SET target = ?", "v1")]
)
def test_a_ref_to_a_collected_commit(repo, damage, statement, ref):
    repo.create_tag("v1", "main")
    hidden, _ = shortened(repo)
    damage.sql(statement, hidden.id)
    (one,) = check(repo).of("missing-commit")
    assert one.about == {"ref": ref, "commit": hidden.id}
    assert "which was collected by run run-9" in one.fact


def test_a_former_parent_that_left_no_trace(repo, damage):
    hidden, kept = shortened(repo)
    damage.sql("DELETE FROM collected WHERE id = ?", hidden.id)
    (one,) = check(repo).of("missing-commit")
    assert one.about == {"commit": kept.id, "parent": hidden.id}
    assert "no run collected it" in one.fact


def test_a_former_parent_is_older_too(repo, damage):
    former = committed(repo, "main", a="1")
    kept = committed(repo, "main", a="2")
    repo.create_tag("v1", former.id)
    reparent(repo, kept, root(repo))
    damage.sql("UPDATE commits SET generation = ? WHERE id = ?", former.generation, kept.id)
    assert only(check(repo), "generation").about == {"commit": kept.id, "parent": former.id}


def test_a_commit_that_is_there_and_collected(repo, damage):
    hidden, kept = shortened(repo)
    damage.sql("UPDATE collected SET id = ? WHERE id = ?", kept.id, hidden.id)
    found = check(repo)
    assert found.counts["collected-commit"] == 1
    assert found.of("collected-commit")[0].about == {"commit": kept.id}
    assert not found.sound


@pytest.mark.parametrize("which", [0, 1])
def test_a_table_that_a_commit_needs_and_a_run_condemned(repo, damage, which):
    made = committed(repo, "main", a="1")
    table = sorted(tables(repo, made))[which]
    condemn(repo, f"_lakefs/{table}")
    found = check(repo)
    assert kinds(found) == {"condemned-table": 1, "condemned": 1}
    assert found.of("condemned-table")[0].about == {"table": table, "ref": "main@"}
    assert "run-7" in found.of("condemned-table")[0].fact
    damage.remove(table)
    assert {"condemned-table": 1, "missing-table": 1}.items() <= kinds(check(repo)).items()


def test_a_table_that_was_condemned_and_is_nobodys_is_told_once(repo):
    hidden, kept = committed(repo, "main", a="1"), committed(repo, "main", a="2")
    gone = tables(repo, hidden) - tables(repo, kept)
    reparent(repo, kept, root(repo))
    take(repo, hidden)
    condemn(repo, *(f"_lakefs/{name}" for name in gone))
    assert kinds(check(repo)) == {"condemned": 2, "unreferenced-object": 1}
    forget_files(repo, gone)
    assert kinds(check(repo)) == {"unreferenced-object": 1}


# ---- tables


def test_a_missing_table_of_either_kind(repo, damage):
    committed(repo, "main", **MANY)
    lost = ranges(repo)[0], repo.resolve("main").commit.metarange
    damage.remove(lost[0])
    assert only(check(repo), "missing-table").about == {"table": lost[0], "ref": "main@"}
    damage.remove(lost[1])
    assert only(check(repo), "missing-table").about == {"table": lost[1], "ref": "main@"}


@pytest.mark.parametrize("change", [flip(), lambda body: body[:-9], lambda _: b"", lambda body: body + b"\0"])
def test_a_table_with_other_bytes(repo, damage, change):
    committed(repo, "main", **MANY)
    for table in (ranges(repo)[1], repo.resolve("main").commit.metarange):
        before = damage.stored[damage.key(table)]
        damage.alter(table, change)
        assert only(check(repo), "corrupt-table").about["table"] == table
        damage.stored[damage.key(table)] = before
    assert check(repo).sound


def test_no_single_byte_of_a_table_may_change(repo, damage):
    committed(repo, "main", a="1", b="2")
    for table in (ranges(repo)[0], repo.resolve("main").commit.metarange):
        body, _ = damage.stored[damage.key(table)]
        for at in range(0, len(body), 23):
            damage.alter(table, flip(at))
            assert not check(repo).sound, f"byte {at} of {len(body)}"
            damage.alter(table, flip(at))


def test_two_sound_ranges_under_each_others_names(repo, damage):
    committed(repo, "main", **MANY)
    one, other = ranges(repo)[:2]
    damage.swap(one, other)
    found = check(repo)
    assert kinds(found) == {"corrupt-table": 2}
    said = {finding.about["table"]: finding.fact for finding in found.findings}
    assert said == {one: f"its content is that of table {other}", other: f"its content is that of table {one}"}


def test_two_ranges_with_the_same_bounds_under_each_others_names(repo, damage):
    committed(repo, "main", a="1", z="1")
    repo.create_branch("dev", "main")
    committed(repo, "dev", a="2", z="1")
    (one,), (other,) = ranges(repo), ranges(repo, "dev")
    damage.swap(one, other)
    assert kinds(check(repo)) == {"corrupt-table": 2}


def test_a_range_in_the_place_of_a_metarange(repo, damage):
    committed(repo, "main", a="1")
    metarange = repo.resolve("main").commit.metarange
    damage.stored[damage.key(metarange)] = damage.stored[damage.key(ranges(repo)[0])]
    found = only(check(repo), "corrupt-table")
    assert (found.about["table"], "holds ranges" in found.fact) == (metarange, True)


@pytest.mark.parametrize("lie", [{"count": 99}, {"min_key": b"a"}])
def test_a_metarange_that_says_wrong_things_of_its_range(repo, damage, lie):
    committed(repo, "main", **MANY)
    first, *rest = repo.ranges.metarange(repo.resolve("main").commit.metarange)
    written = write_metarange([replace(first, **lie), *rest])
    repo.store.put(damage.key(written.id), [written.data])
    damage.sql("UPDATE commits SET metarange = ? WHERE metarange <> ''", written.id)
    found = check(repo)
    assert kinds(found) == {"corrupt-table": 1}
    assert (found.findings[0].about["table"], first.id in found.findings[0].fact) == (written.id, True)


def test_a_metarange_whose_ranges_overlap(repo, damage):
    committed(repo, "main", a="1", c="1")
    repo.create_branch("dev", "main~1")
    committed(repo, "dev", b="1", d="1")
    both = [repo.ranges.metarange(repo.resolve(ref).commit.metarange)[0] for ref in ("main", "dev")]
    written = write_metarange(sorted(both, key=lambda one: one.max_key))
    repo.store.put(damage.key(written.id), [written.data])
    damage.sql("UPDATE commits SET metarange = ? WHERE id = ?", written.id, repo.resolve("dev").commit.id)
    assert only(check(repo), "corrupt-table").about["table"] == written.id


def test_a_damaged_table_hides_no_other_damage_and_makes_nothing_look_unreferenced(repo, damage):
    committed(repo, "main", **MANY)
    write(repo, "main", passing="1")
    repo.reset("main")
    assert kinds(check(repo)) == {"unreferenced-object": 1}
    damage.alter(ranges(repo)[0], flip())
    damage.remove(address(repo, "path/039"))
    repo.store.put(damage.key("no-table"), [b""])
    found = check(repo)
    assert kinds(found) == {"corrupt-table": 1, "missing-object": 1}
    assert "1 table could not be read" in found.left_out[0]


# ---- objects


def test_a_missing_object_is_named_by_path_and_ref(repo, damage):
    committed(repo, "main", a="1", b="2")
    repo.create_tag("v1", "main")
    old = committed(repo, "main", a="again")
    committed(repo, "main", a="and again")
    for path, ref, wanted in [("a", "v1", {"ref": "v1"}), ("b", "main", {"ref": "main@"}), ("a", old.id, {})]:
        lost = address(repo, path, ref)
        kept = damage.stored[damage.key(lost)]
        damage.remove(lost)
        found = only(check(repo), "missing-object")
        assert found.about == {"path": path, "address": lost, **(wanted or {"commit": old.id})}
        damage.stored[damage.key(lost)] = kept


def test_a_missing_object_is_one_finding_however_many_commits_hold_it(repo, damage):
    committed(repo, "main", a="1", b="2")
    for number in range(4):
        committed(repo, "main", b=str(number))
    repo.copy("main", "a", "main", "copy")
    damage.remove(address(repo, "a"))
    found = check(repo)
    assert kinds(found) == {"missing-object": 2}
    assert [one.about["path"] for one in found.findings] == ["copy", "a"]


def test_the_default_branch_is_the_first_witness(repo, damage):
    committed(repo, "main", a="1")
    repo.create_branch("aaa", "main")
    damage.remove(address(repo, "a"))
    assert only(check(repo), "missing-object").about["ref"] == "main@"


def test_a_missing_object_that_is_only_staged_or_sealed_or_hidden(repo, damage):
    write(repo, "main", a="1")
    hidden = address(repo, "a")
    seal(repo, "main")
    write(repo, "main", a="2", b="2")
    damage.remove(hidden)
    damage.remove(address(repo, "b"))
    found = check(repo)
    assert kinds(found) == {"missing-object": 2}
    assert {(one.about["path"], one.about["ref"]) for one in found.findings} == {("a", "main"), ("b", "main")}


@pytest.mark.usefixtures("unsound")
def test_an_address_that_no_store_takes_has_no_object(repo):
    entry = Entry("a", "../up", 1, "", 0)
    stage(repo, "main", entry)
    assert only(check(repo), "missing-object").about["address"] == "../up"


def test_an_object_of_another_size(repo, damage):
    committed(repo, "main", a="12345")
    damage.alter(address(repo, "a"), lambda body: body[:3])
    assert "3 bytes, not 5" in only(check(repo), "wrong-size").fact


def test_other_bytes_of_the_same_size_are_found_by_a_deep_check(repo, damage):
    committed(repo, "main", a="12345", b="67890")
    damage.alter(address(repo, "a"), flip(2))
    assert check(repo).sound
    told = []
    found = check(repo, deep=True, progress=lambda amount, total: told.append((amount, total)))
    assert only(found, "wrong-bytes").about["path"] == "a"
    assert told == [(5, 10), (5, 10)]


def test_a_checksum_that_is_no_md5_is_not_compared(repo):
    given = repo.physical_address("main", "a")
    repo.store.put(repo.prefix + given.ticket.address, [b"hello"])
    repo.link("main", "a", given.token, checksum="d41d8cd9-2")
    found = check(repo, deep=True)
    assert found.sound
    assert "no MD5" in found.left_out[0]


def test_an_object_outside_of_the_lake_is_counted_and_not_looked_at(repo):
    repo.stage("main", "a", "s3://elsewhere/a", size=1, checksum="x")
    stage(repo, "main", Entry("b", "s3://elsewhere/b", 1, "", 0, address_type=AddressType.BY_PREFIX))
    found = check(repo, deep=True)
    assert (found.findings, found.totals.entries, found.totals.outside) == ((), 2, 2)


# ---- staging


def test_staged_changes_of_no_branch(repo, damage):
    write(repo, "main", a="1", b="2")
    held = address(repo, "a")
    damage.sql("UPDATE staging SET token = 'nobodys'")
    found = check(repo)
    assert only(found, "stray-staging").about == {"staging": "nobodys"}
    assert held in oracle.stored(repo)  # and is not called unreferenced: somebody may want it back


def test_a_sealed_staging_area_of_no_branch(repo, damage):
    write(repo, "main", a="1")
    seal(repo, "main")
    damage.sql("UPDATE sealed SET branch = 'nobodys'")
    found = check(repo)
    assert kinds(found) == {"stray-staging": 2}  # the row that seals it, and the changes in it
    assert any("nobodys" in one.fact for one in found.findings)


def test_a_staged_change_that_cannot_be_read(repo, damage):
    write(repo, "main", a="1")
    damage.sql("UPDATE staging SET value = ?", b"\xff\xff")
    found = check(repo)
    assert kinds(found) == {"corrupt-table": 1}
    assert "unreferenced" in found.left_out[0]


# ---- facts


def test_what_a_run_removed_is_no_error(repo):
    committed(repo, "main", a="1", b="2")
    gone = address(repo, "a")
    condemn(repo, gone)
    Damage(repo).remove(gone)
    found = check(repo)
    one = only(found, "removed")
    assert found.sound
    assert one.about == {"path": "a", "ref": "main@", "address": gone}
    assert all(word in one.fact for word in ("run-7", "old-logs", "2026-01-01 00:0"))


def test_what_is_condemned_and_still_stored_is_told_once(repo):
    committed(repo, "main", a="1")
    write(repo, "main", b="2")
    both = address(repo, "a"), address(repo, "b")
    repo.reset("main")
    condemn(repo, *both)
    found = check(repo)
    assert kinds(found) == {"condemned": 2}
    assert {one.about["address"] for one in found.findings} == set(both)
    assert found.sound


def test_objects_that_nothing_holds_are_told(repo):
    committed(repo, "main", kept="1", overwritten="1")
    write(repo, "main", overwritten="2", passing="3")
    repo.remove("main", "passing")
    repo.create_branch("dev", "main")
    write(repo, "dev", staged="4")
    repo.delete_branch("dev", force=True)
    found = check(repo)
    assert found.sound
    assert {one.about["address"] for one in found.findings} == set(oracle.garbage(repo))
    assert kinds(found) == {"unreferenced-object": 2}


def test_an_open_ticket_holds_its_object_until_it_expires(repo, clock):
    given = repo.physical_address("main", "direct")
    repo.store.put(repo.prefix + given.ticket.address, [b"hello"])
    found = only(check(repo), "open-ticket")
    assert found.about == {"path": "direct", "ref": "main", "address": given.ticket.address}
    clock.now += timedelta(hours=25)
    assert only(check(repo), "unreferenced-object").about == {"address": given.ticket.address}


def test_files_among_the_tables_that_no_commit_needs(repo):
    committed(repo, "main", a="1")
    repo.store.put(f"{repo.prefix}_lakefs/0123456789abcdef.partial", [b"half"])
    write(repo, "main", a="2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repo._committer, "_move", killed_moving)
        with pytest.raises(KeyboardInterrupt):
            repo.commit("main", "killed after its tables were written")
    found = check(repo)
    assert kinds(found) == {"unreferenced-table": 3}
    assert "_lakefs/0123456789abcdef.partial" in {one.about["address"] for one in found.findings}


def killed_moving(*_, **__):
    raise KeyboardInterrupt


def test_files_in_no_folder_of_ours(repo):
    for name in ("readme.txt", "data/x", "_lakefs/unknown/x", "_lakefs/retention/x", "_desilt/runs/x"):
        repo.store.put(repo.prefix + name, [b"x"])
    found = check(repo)
    assert {one.about["address"] for one in found.of("foreign-file")} == {"readme.txt", "data/x", "_lakefs/unknown/x"}
    assert kinds(found) == {"foreign-file": 3}


def test_a_file_in_no_folder_of_ours_that_an_entry_points_to_is_an_object(repo):
    repo.store.put(f"{repo.prefix}data/x", [b"x"])
    stage(repo, "main", Entry("a", "data/x", 1, "", 0, address_type=AddressType.BY_PREFIX))
    found = check(repo)
    assert (found.findings, found.totals.objects) == ((), 1)


def test_all_are_counted_and_some_are_listed(repo, monkeypatch):
    monkeypatch.setattr(findings, "LISTED", 3)
    write(repo, "main", **MANY)
    repo.reset("main")
    found = check(repo)
    assert (len(found.findings), found.counts) == (3, {"unreferenced-object": len(MANY)})


# ---- what others do meanwhile


@pytest.fixture
def meanwhile(repo, monkeypatch):
    """Run actions between snapshot and listing: the first in the next look, the second in the one after."""
    real = repo.store.list

    def arrange(*actions):
        todo = iter(actions)

        def listing(prefix, **more):
            if prefix == repo.prefix:
                next(todo, lambda: None)()
            return real(prefix, **more)

        monkeypatch.setattr(repo.store, "list", listing)

    return arrange


def test_an_object_swept_meanwhile_is_removed_and_not_missing(repo, damage, meanwhile):
    committed(repo, "main", a="1")
    gone = address(repo, "a")

    def sweep():
        condemn(repo, gone)
        damage.remove(gone)

    meanwhile(sweep)
    assert only(check(repo), "removed").about["address"] == gone


def test_an_object_let_go_and_collected_meanwhile_is_no_error(repo, damage, meanwhile):
    write(repo, "main", a="1")
    gone = address(repo, "a")

    def collect():
        repo.reset("main")
        damage.remove(gone)

    meanwhile(collect)
    assert check(repo).findings == ()


def test_a_commit_collected_meanwhile_with_its_tables_is_no_error(repo, damage, meanwhile):
    repo.create_branch("dev", "main")
    lost = committed(repo, "dev", a="1")
    tables = (*ranges(repo, "dev"), lost.metarange)
    repo.delete_branch("dev")

    def collect():
        take(repo, lost)
        for table in tables:
            damage.remove(table)

    meanwhile(collect)
    found = check(repo)
    assert found.sound
    assert kinds(found) == {"unreferenced-object": 1}


def test_a_second_look_blames_only_what_the_first_did(repo, damage, meanwhile):
    committed(repo, "main", first="1", second="2", third="3")
    entries = {path: address(repo, path) for path in ("first", "second", "third")}
    lost = []
    for name in ("one", "two"):
        repo.create_branch(name, "main~1")
        lost.append(committed(repo, name, a=name))
        repo.delete_branch(name)

    def collect(commit, path):
        take(repo, commit)
        damage.remove(commit.metarange)
        condemn(repo, entries[path])
        damage.remove(entries[path])

    def spoil():
        collect(lost[1], "second")
        damage.alter(entries["third"], lambda _: b"longer")

    meanwhile(lambda: collect(lost[0], "first"), spoil)
    assert check(repo).sound
    found = check(repo)
    assert found.counts["removed"] == 2
    assert found.counts["wrong-size"] == 1  # it was whole when the first look saw it


def test_damage_is_found_while_others_work(repo, damage, meanwhile):
    committed(repo, "main", a="1", b="2")
    write(repo, "main", c="3")
    lost, gone = address(repo, "a"), address(repo, "b")
    damage.remove(lost)

    def work():
        repo.commit("main", "meanwhile")
        condemn(repo, gone)
        damage.remove(gone)

    meanwhile(work)
    found = check(repo)
    assert kinds(found) == {"missing-object": 1, "removed": 1}
    assert found.of("missing-object")[0].about["address"] == lost


def test_an_object_that_listings_leave_out_is_asked_for_by_name(repo, monkeypatch):
    committed(repo, "main", a="1")
    hidden, real = repo.prefix + address(repo, "a"), repo.store.list

    def without(*arguments, **more):
        for batch in real(*arguments, **more):
            yield batch.filter([key != hidden for key in batch["key"].to_pylist()])

    monkeypatch.setattr(repo.store, "list", without)
    assert check(repo).findings == ()


def test_what_arrives_meanwhile_is_not_called_unreferenced(repo, meanwhile):
    committed(repo, "main", a="1")
    meanwhile(lambda: committed(repo, "main", b="2"))
    assert check(repo).findings == ()


def test_an_object_is_young_by_its_name_even_if_the_stores_clock_lags(repo, meanwhile):
    def upload():
        write(repo, "main", late="1")
        key = repo.prefix + address(repo, "late")
        body, at = repo.store._objects[key]
        repo.store._objects[key] = body, at - timedelta(minutes=5)

    meanwhile(upload)
    assert check(repo).findings == ()


# ---- the command


@pytest.fixture
def place(cli, tmp_path):
    """A lake in a directory, with one commit."""
    name = f"{tmp_path}/lake#demo"
    (tmp_path / "file").write_text("hello")
    assert cli("lake", "init", name)[0] == 0
    assert cli("lake", "put", name, "main", "a/\x1bb", tmp_path / "file")[0] == 0
    assert cli("lake", "commit", name, "main", "-m", "first")[0] == 0
    return name


def test_the_command_says_sound_and_exits_with_0(cli, place):
    code, out, err = cli("fsck", place)
    assert (code, err) == (0, "")
    assert "2 commits, 2 tables, 1 entries, 1 objects of 5 B" in out
    assert out.endswith("Sound: no errors.\n")


def test_the_command_names_errors_a_way_on_and_exits_with_1(cli, place, tmp_path):
    (found,) = (tmp_path / "lake").glob("repos/*/branches/*/*/*")
    found.write_bytes(b"hallo")
    assert cli("fsck", place)[0] == 0
    code, out, _ = cli("fsck", place, "--deep")
    assert (code, "wrong-bytes, 1 ×" in out, "\x1b" in out) == (1, True, False)
    found.unlink()
    code, out, _ = cli("fsck", place)
    assert code == 1
    assert "a/\\x1bb at main@" in out
    assert "restore the objects" in out
    assert out.endswith("Not sound: 1 error.\n")


def test_the_command_gives_one_json_object(cli, place, tmp_path):
    (found,) = (tmp_path / "lake").glob("repos/*/branches/*/*/*")
    found.unlink()
    code, out, _ = cli("fsck", place, "--json")
    told = json.loads(out)
    assert (code, out.count("\n"), told["sound"], told["counts"]) == (1, 1, False, {"missing-object": 1})
    assert told["totals"]["commits"] == 2
    assert told["findings"][0]["severity"] == "error"
    assert told["findings"][0]["about"]["path"] == "a/\x1bb"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("where", ["{}/nosuch#demo", "{}/lake#nosuch", "ftp://host#demo"])
def test_a_repository_that_is_not_there_is_one_line(cli, tmp_path, where):
    code, out, err = cli("fsck", where.format(tmp_path))
    assert (code > 0, out, err.count("\n")) == (True, "", 1)
