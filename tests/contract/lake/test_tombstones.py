"""Condemned addresses: gone at once, for everybody, and no trouble to those who carry them on."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.errors import Gone, Unreadable
from desilt.lake import repositories
from desilt.records import removals as tombstones
from desilt.records.removals import State, Tombstone
from words import committed, contents, write

AT = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


def condemn(repo, *addresses):
    """What a sweep does to a batch, without asking whether it may."""
    with repo.database.write() as tx:
        repositories.condemning(tx, repo.uid)
        tombstones.condemn(tx, repo.uid, [Tombstone(address, "run-7", "old-logs", AT) for address in addresses])


def gone(repo, *paths, ref="main"):
    condemn(repo, *(repo.stat(ref, path).address for path in paths))


def readable(repo, ref):
    found = {}
    for entry in repo.list(ref):
        try:
            found[entry.path] = b"".join(repo.get(ref, entry.path)).decode()
        except Gone:
            found[entry.path] = None
    return found


def test_a_condemned_object_is_gone_for_stat_and_get_with_run_rule_and_date(repo):
    committed(repo, "main", a="1", b="2")
    gone(repo, "a")
    for look in (repo.stat, repo.get):
        with pytest.raises(Gone, match=r"'a' is gone: run run-7 .* rule 'old-logs' on 2026-02-03 04:05:06") as raised:
            look("main", "a")
    assert (raised.value.run, raised.value.rule, raised.value.at) == ("run-7", "old-logs", AT)
    assert readable(repo, "main") == {"a": None, "b": "2"}


@pytest.mark.usefixtures("unsound")
def test_an_object_condemned_between_look_and_read_is_gone_and_a_lost_one_is_named(repo):
    committed(repo, "main", a="1", b="2")
    reading = {path: repo.get("main", path) for path in "ab"}
    gone(repo, "a")
    repo.store._objects.clear()  # the sweep took one; the other is lost
    with pytest.raises(Gone):
        b"".join(reading["a"])
    with pytest.raises(Unreadable, match="'b'"):
        b"".join(reading["b"])


def test_it_is_gone_from_every_commit_and_branch_that_holds_it(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    repo.copy("main", "a", "main", "copy")
    repo.commit("main", "copy")
    gone(repo, "a")
    assert readable(repo, "main") == {"a": None, "copy": None}
    assert readable(repo, "dev") == {"a": None}
    assert readable(repo, "main~1") == {"a": None}


def test_a_gone_object_is_not_copied_moved_or_linked(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    address = repo.physical_address("main", "direct")
    repo.store.put(repo.prefix + address.ticket.address, [b"x"])
    condemn(repo, address.ticket.address)
    gone(repo, "a")
    for act in (
        lambda: repo.copy("main", "a", "main", "b"),
        lambda: repo.move("main", "a", "b"),
        lambda: repo.copy("main", "a", "dev", "b"),
        lambda: repo.link("main", "direct", address.token),
    ):
        with pytest.raises(Gone):
            act()
    assert list(repo.uncommitted("main")) == list(repo.uncommitted("dev")) == []


def test_an_upload_condemned_on_its_way_fails_loudly(repo, monkeypatch):
    real = repo.store.put

    def put_and_condemn(key, chunks):
        size = real(key, chunks)
        condemn(repo, key.removeprefix(repo.prefix))
        return size

    monkeypatch.setattr(repo.store, "put", put_and_condemn)
    with pytest.raises(Gone):
        repo.put("main", "a", b"x")
    monkeypatch.undo()
    assert contents(repo, "main") == {}


def test_a_renewal_of_a_condemned_upload_fails_loudly(repo, clock, monkeypatch):
    seen = []
    real = repo.store.put

    def put(key, chunks):
        seen.append(key)
        return real(key, chunks)

    def body():
        yield b"x"
        condemn(repo, seen[-1].removeprefix(repo.prefix))
        clock.now += timedelta(hours=12)
        yield b"y"
        raise AssertionError("went on after its address was condemned")

    monkeypatch.setattr(repo.store, "put", put)
    with pytest.raises(Gone):
        repo.put("main", "a", body())


def test_a_branch_goes_on_over_gone_entries(repo):
    committed(repo, "main", a="1", b="2", c="3")
    repo.create_branch("dev", "main")
    gone(repo, "a", "b")
    committed(repo, "main", d="4")
    committed(repo, "dev", e="5")
    repo.merge("dev", "main")
    assert readable(repo, "main") == {"a": None, "b": None, "c": "3", "d": "4", "e": "5"}
    repo.remove("main", "a")
    write(repo, "main", b="again")
    repo.commit("main", "mended")
    assert readable(repo, "main") == {"b": "again", "c": "3", "d": "4", "e": "5"}
    repo.revert("main", "main")
    assert readable(repo, "main") == {"a": None, "b": None, "c": "3", "d": "4", "e": "5"}
    assert {change.path for change in repo.diff("main~1", "main")} == {"a", "b"}


def test_the_same_bytes_uploaded_again_bring_a_gone_path_back_through_merges(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    gone(repo, "a")
    committed(repo, "dev", a="1")
    repo.merge("dev", "main")
    assert readable(repo, "main") == {"a": "1"}


def test_a_new_branch_or_tag_knows_how_many_of_its_entries_are_gone(repo):
    committed(repo, "main", a="1", b="2", c="3")
    assert repo.count_gone("main") == 0
    gone(repo, "a", "c")
    repo.create_branch("dev", "main")
    repo.create_tag("v1", "main")
    assert (repo.count_gone("dev"), repo.count_gone("v1"), repo.count_gone("main~1")) == (2, 2, 0)


def test_tombstones_belong_to_one_repository(lake, repo):
    other = lake.create_repository("other")
    committed(repo, "main", a="1")
    condemn(other, repo.stat("main", "a").address)
    assert readable(repo, "main") == {"a": "1"}


def test_an_address_passes_to_the_run_that_condemns_it_again(repo):
    address = repo.put("main", "a", b"1").address
    condemn(repo, address)
    with repo.database.write() as tx:
        tombstones.condemn(tx, repo.uid, [Tombstone(address, "run-8", "other", AT)])
    assert repo.tombstones([address, "unknown"]) == {address: Tombstone(address, "run-8", "other", AT)}


def test_what_was_restored_is_on_record_and_no_tombstone(repo):
    committed(repo, "main", a="1")
    address = repo.stat("main", "a").address
    condemn(repo, address)
    with repo.database.write() as tx:
        tombstones.lift(tx, repo.uid, "run-7", [address], State.RESTORED, at=AT)
    assert readable(repo, "main") == {"a": "1"}
    assert repo.tombstones([address]) == {}
    with repo.database.read() as tx:
        assert tombstones.recorded(tx, repo.uid, [address])[address].state is State.RESTORED
        assert tombstones.every(tx, repo.uid).to_pylist() == []


def test_every_move_of_a_ref_counts(repo):
    def moves(act):
        before = repo.generation()
        act()
        return repo.generation() - before

    write(repo, "main", a="1")
    assert moves(lambda: write(repo, "main", b="1")) == 0
    assert moves(lambda: repo.commit("main", "x")) == 1
    assert moves(lambda: repo.create_branch("dev", "main")) == 1
    assert moves(lambda: repo.create_tag("v1", "main")) == 1
    committed(repo, "dev", c="1")
    assert moves(lambda: repo.merge("dev", "main")) == 1
    assert moves(lambda: repo.revert("main", "main", parent=1)) == 1
    assert moves(lambda: repo.delete_tag("v1")) == 1
    assert moves(lambda: repo.delete_branch("dev")) == 1
    assert moves(lambda: repo.reset("main")) == 0
