"""What lives where only listings tell, on hand-made histories, folders and inventories."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from desilt.columns.files import put, put_addresses
from desilt.columns.kernel import judge_buckets
from desilt.columns.schemas import PLAN
from desilt.domain.history import Commit
from desilt.domain.reason import Reason
from desilt.errors import Dangling
from desilt.executors.executor import HERE
from desilt.icechunk.layout import LAYOUT
from desilt.inventory.listing import inventory_of
from desilt.jobs.collect import still
from desilt.jobs.collect.folder import AssetFiles
from desilt.jobs.collect.living import living
from desilt.jobs.collect.still import Still
from desilt.jobs.counts import Counts, Missing
from desilt.jobs.gc.kernel import GarbageJudge
from desilt.objects import open_store
from desilt.repository.snapshot import Branch, Revision, Snapshot
from desilt.runs.report import Amount

NOW = datetime(2026, 5, 1, tzinfo=UTC)
OLD, YOUNG = NOW - timedelta(days=30), NOW
BEFORE = NOW - timedelta(days=7)


def commit(name, *parents, at=OLD):
    return Commit(name, parents, name, at, "", "")


def history(*commits, head):
    return Snapshot(
        Revision(1, ""), "main", {one.id: one for one in commits}, (Branch("main", "main", head, OLD),), (), ()
    )


def folder(**times):
    rows = [(f"snapshots/{name}", 1, at, "remove", "collected", "") for name, at in times.items()]
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(PLAN)]
    return AssetFiles("snapshots/", pa.table(columns, schema=PLAN), 0)


class Files:
    """Snapshots by their own files."""

    def __init__(self, *commits):
        self.asked, self._commits = set(), {one.id: one for one in commits}

    def commits(self, names, known):
        self.asked |= set(names)
        return [one for one in self._commits.values() if one.id not in known]


def test_what_refs_reach_lives_and_the_rest_of_an_old_history_goes_children_first():
    seen = history(commit("a"), commit("b", "a"), commit("c", "a"), commit("d", "c"), head="b")
    files = Files()
    found = living(seen, files, folder(a=OLD, b=OLD, c=OLD, d=OLD), BEFORE, frozenset())
    assert found.live == {"a", "b"}
    assert sorted(one.id for one in found.dead) == ["c", "d"]
    assert not files.asked  # what is old and unreached is not even read


@pytest.mark.parametrize("at", [YOUNG, BEFORE, None])
def test_a_snapshot_lives_that_is_young_by_its_file_with_all_it_descends_from(at):
    """What has no time is young; and what has that of the limit."""
    seen = history(commit("a"), head="a")
    files = Files(commit("c"), commit("d", "c"))
    found = living(seen, files, folder(a=OLD, c=OLD, d=at), BEFORE, frozenset())
    assert (found.live, files.asked, found.unreached) == ({"a", "c", "d"}, {"d"}, 2)


def test_it_is_the_store_that_tells_how_old_one_is_and_only_of_a_missing_file_itself():
    seen = history(commit("a"), commit("b", "a", at=YOUNG), commit("c", "a", at=YOUNG), head="a")
    assert living(seen, Files(), folder(a=OLD, b=OLD), BEFORE, frozenset()).live == {"a", "c"}


def test_one_that_is_spared_lives_if_it_is_there():
    seen = history(commit("a"), commit("b", "a"), head="a")
    files = Files(commit("c"))
    found = living(seen, files, folder(a=OLD, b=OLD, c=OLD), BEFORE, {"b", "c", "x"})
    assert (found.live, files.asked) == ({"a", "b", "c"}, {"c"})


def test_what_is_needed_and_not_listed_stops_it_with_examples():
    with pytest.raises(
        Dangling, match=r"4 of the snapshots that are needed .*snapshots/b, snapshots/c, snapshots/d, …"
    ):
        folder(a=OLD).check({"a", "b", "c", "d", "e"}, "snapshots")
    folder(a=OLD, b=OLD).check({"a"}, "snapshots")


def test_of_a_folder_goes_what_is_old_and_dead():
    some = folder(a=OLD, b=OLD, c=YOUNG, d=None)
    assert some.going({"a"}, BEFORE)["address"].to_pylist() == ["snapshots/b"]


# ---- chunks


def named(*letters):
    return [f"chunks/{letter * 19}0" for letter in letters]


@pytest.fixture
def store(tmp_path):
    return open_store(str(tmp_path))


def judged(store, stored, *held):
    times = pa.array([OLD] * len(stored), pa.timestamp("us", tz="UTC"))
    listing = pa.record_batch(
        {"key": pa.array(stored, pa.string()), "size_bytes": [1] * len(stored), "modified_at": times}
    )
    inventory = put(store, "inventory", inventory_of("", [listing]))
    files = [put_addresses(store, f"held-{at}", some) for at, some in enumerate(held)]
    judge = GarbageJudge(
        LAYOUT,
        (inventory,),
        {Reason.COMMITTED: files},
        now=NOW,
        before=BEFORE,
        copied_at=None,
        folder="run/",
        whole=True,
    )
    return judge_buckets(HERE, store.uri, judge)


def test_what_is_held_and_not_there_is_counted_once_however_many_hold_it(store):
    answer = judged(store, named("A", "B"), named("B", "C", "D"), named("C"))
    assert answer.missing == Missing(2, tuple(named("C", "D")))
    assert answer.objects["chunks", "unreferenced"] == 1


def test_where_all_is_there_nothing_is_missing(store):
    assert judged(store, named("A", "B", "C"), named("B"), named("C", "B")).missing == Missing()


def test_where_nothing_is_listed_all_that_is_held_is_missing(store):
    assert judged(store, [], named("A", "B")).missing.count == 2


def test_missing_ones_are_added_up_with_some_examples():
    some = Missing(2, ("b", "d")) + Missing(3, ("a", "c", "e"))
    assert some == Missing(5, ("a", "b", "c"))


# ---- what the last run leaves


def test_another_listing_would_find_nothing_until_the_limit_comes_to_the_last():
    last = Still("run", NOW, "name", {})
    margin = timedelta(minutes=10)
    assert last.is_so("name", NOW - margin)
    assert not last.is_so("name", NOW - margin + timedelta(seconds=1))
    assert not last.is_so("another", BEFORE)
    assert not Still().is_so("", BEFORE)


@pytest.mark.parametrize("reason", [one for one in Reason if one.verdict == "keep"])
def test_what_stays_for_a_while_is_looked_at_again(reason):
    answer = Counts()
    answer.objects["", reason], answer.bytes["", reason] = 1, 2
    value = still.after(answer, "name", NOW)
    assert (value is not None) == (reason in (Reason.COMMITTED, Reason.FOREIGN))
    if value is not None:
        assert value["kept"] == {reason: [1, 2]}
        assert Still("run", NOW, "name", {reason: Amount(1, 2)}).again() == value


def test_where_something_is_missing_it_is_looked_for_each_time():
    assert still.after(Counts(missing=Missing(1, ("a",))), "name", NOW) is None
