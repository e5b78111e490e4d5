"""Nothing live goes from a lakeFS server's repository: what lists leave out, orders of the last moment, copies, sleep.

In a *bucket*, branches are not listed whole, as on S3: the model is the same, and its files are in a directory.
"""

import hashlib
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from desilt.api.repository import OpenRepository
from desilt.api.workplace import Workplace
from desilt.columns.schemas import MOMENT, PLAN
from desilt.domain.address import uid
from desilt.errors import Conflict, OtherRecords, PolicyReplaced, RecordsOutdated
from desilt.executors.executor import HERE
from desilt.lakefs import gate, held, history, unlisted
from desilt.lakefs.adoption import adopt
from desilt.lakefs.source import LakefsSource
from desilt.records.holds import HoldKind
from desilt.repository.gate import Reliance
from desilt.repository.opening import Opened
from desilt.sweep import batches as sweeping
from desilt.sweep import purge as purging
from lakefs_world import DAY, opened, world

POLICY = {"rules": {"logs": {"prefix": "logs/", "days": 30}}}


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    monkeypatch.setattr(unlisted, "LISTED_WHOLE", "")
    with world(tmp_path, monkeypatch) as found:
        yield found


@pytest.fixture(params=["directory", "bucket"])
def here(request, tmp_path, monkeypatch):
    if request.param == "bucket":
        monkeypatch.setattr(unlisted, "LISTED_WHOLE", "")
    with world(tmp_path, monkeypatch) as found:
        yield found


def rules(here, days):
    here.ask("PUT", "settings", "gc_rules", body={"default_retention_days": days, "branches": []})


def stage(here, branch, path, address, body, uri=None):
    """An entry over an object of the repository, by the namespace's own name: the server keeps it as a relative one."""
    where = uri or f"{here.model.repositories[here.subject.name].place.namespace}/{address}"
    facts = {"physical_address": where, "checksum": hashlib.md5(body).hexdigest(), "size_bytes": len(body)}
    here.ask("PUT", "branches", branch, "objects", body=facts, path=path)


def sweeps_all(planned):
    return planned.sweep(confirm=True, max_share=1)


def garbage(here, body=b"lost"):
    address = here.upload("main", "lost", body)
    here.ask("DELETE", "branches", "main", "objects", path="lost")
    return address


def revision_of(here):
    return here.repository.source(HERE).snapshot(here.subject.now()).revision


# ---- what lists leave out


def test_an_upload_of_the_bytes_that_its_path_has_is_kept(here):
    first = here.upload("main", "a", b"same")
    here.subject.commit("main", "first")
    again = here.upload("main", "a", b"same")
    lost = garbage(here, b"also")
    here.wait(3 * DAY)
    assert here.stored() == {first, again, lost}
    here.api.gc.run(confirm=True, max_share=1)
    assert here.stored() == {first, again}


def test_and_one_that_comes_after_the_plan(here):
    first = here.upload("main", "a", b"same")
    here.subject.commit("main", "first")
    lost = garbage(here, b"same")
    here.wait(3 * DAY)
    planned = here.api.gc.plan()
    assert planned.report.removed.objects == 1
    stage(here, "main", "a", lost, b"same")
    assert sweeps_all(planned).swept.held_again == 1
    assert here.stored() == {first, lost}


def test_and_one_that_comes_while_it_is_in_the_trash(here):
    here.upload("main", "a", b"same")
    here.subject.commit("main", "first")
    lost = garbage(here, b"same")
    here.wait(3 * DAY)
    report = here.api.gc.run(confirm=True, max_share=1, action="trash")
    stage(here, "main", "a", lost, b"same")
    here.wait(10 * DAY)
    assert here.api.purge(older_than="7d").objects == 0
    assert here.api.restore(report.run).restored == 1
    assert lost in here.stored()


def test_two_objects_of_the_same_bytes_that_expire_together_are_told_apart(here):
    """One is served where the other is committed; both are old enough to go by the rule."""
    one, two = here.upload("main", "logs/a", b"same"), here.upload("main", "logs/b", b"same")
    here.upload("main", "other", b"kept")
    here.subject.commit("main", "both")
    here.wait(40 * DAY)
    stage(here, "main", "logs/a", two, b"same")
    here.api.lifecycle.run(policy=POLICY, confirm=True, max_share=1)
    assert two in here.stored()
    assert one not in here.stored()


def imported(here, path, body):
    """A committed entry over an object that lies elsewhere."""
    stage(here, "main", path, "", body, uri="local:///elsewhere/object")
    return here.subject.commit("main", "imported")


def test_an_object_of_ours_with_the_bytes_of_one_that_was_imported_is_kept(here):
    imported(here, "a", b"same")
    lost = garbage(here, b"same")
    stage(here, "main", "a", lost, b"same")
    here.wait(3 * DAY)
    here.api.gc.run(confirm=True, max_share=1)
    assert here.stored() == {lost}


def test_and_one_that_is_put_there_after_the_plan(here):
    imported(here, "a", b"same")
    lost = garbage(here, b"same")
    here.wait(3 * DAY)
    planned = here.api.gc.plan()
    stage(here, "main", "a", lost, b"same")
    planned.sweep(confirm=True, max_share=1, allow_empty=True)
    assert here.stored() == {lost}


@pytest.mark.parametrize("branch", ["main", "odd/na me%20", "hidden"])
def test_a_whole_address_that_is_spelled_in_another_way_is_kept_though_the_server_does_not_list_it(here, branch):
    here.upload("main", "a", b"1")
    here.subject.commit("main", "first")
    if branch != "main":
        here.ask("POST", "branches", body={"name": branch, "source": "main", "hidden": branch == "hidden"})
    lost = garbage(here)
    name = here.subject.name
    stage(here, branch, "new", lost, b"lost", uri=f"local://%{ord(name[0]):02x}{name[1:]}/{lost}")
    here.wait(3 * DAY)
    here.api.gc.run(confirm=True, max_share=1)
    assert lost in here.stored()


def test_and_in_a_commit_that_no_head_has_any_more(here):
    lost, name = garbage(here), here.subject.name
    stage(here, "main", "new", lost, b"lost", uri=f"local://%{ord(name[0]):02x}{name[1:]}/{lost}")
    here.subject.commit("main", "taken")
    here.ask("DELETE", "branches", "main", "objects", path="new")
    here.upload("main", "a", b"1")
    here.subject.commit("main", "gone again")
    here.wait(3 * DAY)
    here.api.gc.run(confirm=True, max_share=1)
    assert lost in here.stored()


def test_and_if_it_is_committed_while_branches_are_looked_at(here):
    here.upload("main", "a", b"1")
    here.subject.commit("main", "first")
    lost, name = garbage(here), here.subject.name
    here.wait(3 * DAY)
    planned = here.api.gc.plan()
    stage(here, "main", "new", lost, b"lost", uri=f"local://%{ord(name[0]):02x}{name[1:]}/{lost}")
    here.model.before("GET", ".*/branches/main/diff", lambda _: here.subject.commit("main", "taken"))
    sweeps_all(planned)
    assert lost in here.stored()


def test_what_is_staged_is_kept_though_the_server_loses_its_own_list(here):
    """As it does where a branch is deleted while it lists: of that page, no file is there and none is told of."""
    here.upload("main", "a", b"1")
    here.subject.commit("main", "first")
    kept, lost = here.upload("main", "staged", b"staged"), garbage(here)
    here.wait(3 * DAY)
    nothing = {"run_id": "g3skk03ddti6ar2ua000", "gc_uncommitted_location": ""}
    here.model.misbehave("POST", ".*/gc/prepare_uncommited", status=201, answer=nothing, times=float("inf"))
    here.api.gc.run(confirm=True, max_share=1)
    assert kept in here.stored()
    assert lost not in here.stored()


@pytest.mark.parametrize("alone", ["the server's list", "what branches serve"])
def test_what_is_staged_after_the_plan_is_kept_by_either_way_of_looking(here, monkeypatch, alone):
    here.upload("main", "a", b"1")
    here.subject.commit("main", "first")
    lost = garbage(here, b"lost")
    here.wait(3 * DAY)
    planned = here.api.gc.plan()
    stage(here, "main", "back", lost, b"lost")
    if alone == "the server's list":
        monkeypatch.setattr(LakefsSource, "served", lambda *_: pa.array([], pa.string()))
    else:
        monkeypatch.setattr(held, "staged_now", lambda _: pa.array([], pa.string()))
    assert sweeps_all(planned).swept.held_again == 1
    assert lost in here.stored()


def test_at_more_paths_than_a_listing_has_pages_branches_are_listed(bucket):
    first = {bucket.upload("main", f"a/{n}", b"same") for n in range(5)}
    bucket.subject.commit("main", "first")
    again, lost = bucket.upload("main", "a/3", b"same"), garbage(bucket, b"also")
    bucket.wait(3 * DAY)
    asked = []
    bucket.model.before("GET", ".*/objects/stat", asked.append)
    bucket.api.gc.run(confirm=True, max_share=1)
    assert bucket.stored() == {*first, again}
    assert lost not in bucket.stored()
    assert not asked


def test_a_path_that_is_no_utf8_is_not_asked_for_by_another_name(bucket):
    bucket.upload("main", "a", b"1")
    bucket.subject.commit("main", "first")
    lost, name = garbage(bucket), bucket.subject.name
    where = f"local://%{ord(name[0]):02x}{name[1:]}/{lost}"
    facts = {"physical_address": where, "checksum": hashlib.md5(b"lost").hexdigest(), "size_bytes": 4}
    bucket.ask("PUT", "branches", "main", "objects", body=facts, path=b"odd\xff")
    bucket.wait(3 * DAY)
    bucket.api.gc.run(confirm=True, max_share=1)
    assert lost in bucket.stored()


def test_a_branch_that_is_deleted_while_branches_are_asked_stops_nobody(bucket):
    bucket.upload("main", "a", b"1")
    bucket.subject.commit("main", "first")
    bucket.subject.branch("short", "main")
    lost = garbage(bucket)
    bucket.wait(3 * DAY)
    bucket.model.before("GET", ".*/branches/short/diff", lambda _: bucket.subject.delete_branch("short"), times=1)
    bucket.api.gc.run(confirm=True, max_share=1)
    assert lost not in bucket.stored()


# ---- between the last look and the moment


def test_what_is_committed_while_it_is_read_what_is_held_is_kept(here):
    here.upload("main", "a", b"1")
    here.subject.commit("main", "first")
    lost = garbage(here)
    here.wait(3 * DAY)
    planned = here.api.gc.plan()
    stage(here, "main", "again", lost, b"lost")
    taken = []
    here.model.before(
        "POST", ".*/prepare_uncommited", lambda _: taken.append(here.subject.commit("main", "taken")), times=1
    )
    sweeps_all(planned)
    assert taken
    assert lost in here.stored()


def test_what_moves_behind_the_first_reading_of_what_is_staged_is_seen_by_the_second(bucket):
    """From a branch that is read later to one that was read already, with an object of its own at each."""
    bucket.upload("main", "a", b"1")
    bucket.subject.commit("main", "first")
    for name in ("early", "late"):
        bucket.subject.branch(name, "main")
    moving = bucket.upload("late", "x", b"moving")
    bucket.wait(3 * DAY)
    bucket.model.ways.page_for_each_branch = True

    def move(_):
        pages.append(True)
        if len(pages) == 2:  # the first was of early
            stage(bucket, "early", "x", moving, b"moving")
            bucket.ask("DELETE", "branches", "late", "objects", path="x")

    pages = []
    bucket.model.before("POST", ".*/prepare_uncommited", move)
    assert bucket.api.gc.plan().report.removed.objects == 0
    assert len(pages) > 4


def test_young_is_what_the_store_or_the_name_says_to_the_second(here):
    """A day and ten minutes: the grace period, and as much as clocks may differ."""
    here.upload("main", "a", b"1")
    here.subject.commit("main", "first")
    lost = garbage(here)
    here.wait(DAY + timedelta(minutes=10))
    assert here.api.gc.plan().report.removed.objects == 0
    here.wait(timedelta(seconds=1))
    planned = here.api.gc.plan()
    assert planned.report.removed.objects == 1
    here.subject.clock.now -= timedelta(seconds=1)  # whoever sweeps it has a clock that is behind
    here.model.clock.now -= timedelta(seconds=1)
    assert sweeps_all(planned).swept.held_again == 1
    assert lost in here.stored()


@pytest.mark.parametrize("age", [timedelta(0), DAY + timedelta(minutes=10)])
@pytest.mark.parametrize("by", ["name", "store"])
def test_either_is_enough_to_be_young(here, by, age):
    here.upload("main", "a", b"1")
    here.subject.commit("main", "first")
    here.wait(3 * DAY)
    planned = here.api.gc.plan()
    young = garbage(here)
    here.wait(age)
    old = here.subject.now() - 9 * DAY
    address = young if by == "name" else young[:-20] + uid(old, bytes(8))
    modified = old if by == "name" else here.subject.now() - age
    columns = [[address], [4], pa.array([modified], MOMENT), ["remove"], ["unreferenced"], [""]]
    trusted = replace(Reliance(here.subject.now(), here.subject.now()), judged=None)
    found = here.repository.gate.held("run", revision_of(here), trusted)
    found.catch_up()
    assert found.holds(pa.table(columns, schema=PLAN)).tolist() == [True]
    assert planned.report.removed.objects == 0


@pytest.fixture
def one_by_one(monkeypatch):
    """A batch is one object."""
    from desilt.objects.local import LocalStore

    monkeypatch.setattr(LocalStore, "delete_batch", 1)


def after_the_first_batch(monkeypatch, then):
    settle, done = gate.LakefsGate.settle, []

    def settled(self, *words):
        settle(self, *words)
        if not done:
            done.append(True)
            then()

    monkeypatch.setattr(gate.LakefsGate, "settle", settled)


@pytest.mark.usefixtures("one_by_one")
def test_an_order_to_keep_counts_from_the_moment_that_it_is_given(here, monkeypatch):
    here.upload("main", "kept", b"1")
    here.subject.commit("main", "kept")
    lost = {garbage(here, bytes([n])) for n in range(3)}
    here.wait(3 * DAY)

    def hold():
        for address in lost & here.stored():
            here.repository.orders.add(HoldKind.ADDRESS, address, reason="", until=None)

    after_the_first_batch(monkeypatch, hold)
    assert here.api.gc.run(confirm=True, max_share=1).swept.held_again == 2
    assert len(lost & here.stored()) == 2


@pytest.mark.usefixtures("one_by_one")
def test_a_policy_that_is_replaced_stops_what_is_left(here, monkeypatch):
    old = {here.upload("main", f"logs/{n}", bytes([n])) for n in range(3)}
    here.upload("main", "other", b"kept")
    here.subject.commit("main", "old")
    here.wait(40 * DAY)
    here.api.lifecycle.set(POLICY)
    longer = {"rules": {"logs": {"prefix": "logs/", "days": 300}}}
    after_the_first_batch(monkeypatch, lambda: here.repository.orders.set_policy("lifecycle", longer, ()))
    with pytest.raises(PolicyReplaced):
        here.api.lifecycle.run(confirm=True, max_share=1)
    assert len(old & here.stored()) == 2


def test_what_came_to_be_held_while_the_machine_slept_is_kept(here, monkeypatch):
    """It sleeps after the look that a batch was condemned by, and before its objects go."""
    here.upload("main", "kept", b"1")
    here.subject.commit("main", "kept")
    lost = garbage(here)
    here.wait(3 * DAY)
    condemn, asleep, ticks = gate.LakefsGate.condemn, [0.0], time.clock_gettime

    def condemned(self, *words):
        back = condemn(self, *words)
        if not asleep[0]:
            stage(here, "main", "again", lost, b"lost")
            asleep[0] = 3600.0
        return back

    monkeypatch.setattr(gate.LakefsGate, "condemn", condemned)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: ticks(clock) + asleep[0])
    with pytest.raises(Conflict, match="came to be held"):
        here.api.gc.run(confirm=True, max_share=1)
    assert lost in here.stored()
    here.api.gc.run(confirm=True, max_share=1)  # which finishes it
    assert lost in here.stored()
    assert here.api.explain(lost)[0].verdict == "staged"


# ---- restore


def test_restore_leaves_what_is_in_its_place(here):
    """Somebody used the same address again: what lies there now is newer than what lies in the trash."""
    here.upload("main", "kept", b"1")
    here.subject.commit("main", "kept")
    lost = garbage(here, b"old")
    here.wait(3 * DAY)
    report = here.api.gc.run(confirm=True, max_share=1, action="trash")
    here.repository.store.put(lost, [b"newer"])
    here.api.restore(report.run)
    assert here.repository.store.get(lost) == b"newer"


def test_what_came_to_be_held_while_a_purge_slept_is_kept_and_comes_back(here, monkeypatch):
    here.upload("main", "kept", b"1")
    here.subject.commit("main", "kept")
    lost = garbage(here)
    here.wait(3 * DAY)
    report = here.api.gc.run(confirm=True, max_share=1, action="trash")
    here.wait(10 * DAY)
    delete, asleep, ticks = purging.delete, [0.0], time.clock_gettime

    def slow(*values, **words):
        stage(here, "main", "again", lost, b"lost")
        asleep[0] = 3600.0
        return delete(*values, **words)

    monkeypatch.setattr(purging, "delete", slow)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: ticks(clock) + asleep[0])
    with pytest.raises(Conflict, match="came to be held"):
        here.api.purge(older_than="7d")
    assert here.api.restore(report.run).restored == 1
    assert here.repository.store.get(lost) == b"lost"


# ---- cut off, and finished later


@pytest.mark.parametrize("times", [1, 2])
def test_a_batch_that_was_cut_off_leaves_what_came_to_be_held_since_and_is_finished(here, monkeypatch, times):
    here.upload("main", "kept", b"1")
    here.subject.commit("main", "kept")
    lost, other = garbage(here), garbage(here, b"other")
    here.wait(3 * DAY)
    with monkeypatch.context() as killed:
        killed.setattr(sweeping, "delete", killing)
        with pytest.raises(KeyboardInterrupt):
            here.api.gc.run(confirm=True, max_share=1)
        stage(here, "main", "again", lost, b"lost")
        for _ in range(times - 1):
            with pytest.raises(KeyboardInterrupt):
                here.api.gc.run(confirm=True, max_share=1)
            here.ask("DELETE", "branches", "main", "objects", path="again")  # it was spared, and stays so
    here.api.gc.run(confirm=True, max_share=1)
    assert lost in here.stored()
    assert other not in here.stored()
    first = here.api.report(here.api.runs(job="gc")[-1].id).swept
    assert (first.state, first.asked, first.held_again) == ("swept", 1, 1)


def killing(*_, **__):
    raise KeyboardInterrupt


# ---- refs that move between a plan by rules and its sweep


@pytest.fixture
def expiring(here):
    """A path of logs, committed long ago and replaced since; and a plan by lifecycle in which it goes."""
    old = here.upload("main", "logs/a", b"old")
    first = here.subject.commit("main", "first")
    here.upload("main", "logs/a", b"newer")
    here.upload("main", "other", b"kept")
    here.wait(40 * DAY)
    here.subject.commit("main", "second")
    here.upload("main", "logs/a", b"newest")
    here.subject.commit("main", "third")
    planned = here.api.lifecycle.plan(policy=POLICY)
    assert planned.report.removed.objects >= 1
    return old, first, planned


def tagged(here, first):
    here.subject.tag("v1", first)


def held_as_a_ref(here, first):
    here.repository.orders.add(HoldKind.REF, first, reason="", until=None)


def held_by_prefix(here, _):
    here.repository.orders.add(HoldKind.PREFIX, "logs/", reason="", until=None)


def staged_again(here, _):
    stage(here, "main", "again", here.old, b"old")


def staged_on_a_hidden_branch(here, _):
    here.ask("POST", "branches", body={"name": "hidden", "source": "main", "hidden": True})
    stage(here, "hidden", "again", here.old, b"old")


def committed_again(here, _):
    stage(here, "main", "other/again", here.old, b"old")
    here.subject.commit("main", "again")


def deleted(here, _):
    """The only branch that reached a commit goes: nobody has a say on it any more."""
    here.ask("PUT", "branches", "main", "hard_reset", ref=here.root)


@pytest.mark.parametrize(
    "move",
    [tagged, held_as_a_ref, held_by_prefix, staged_again, staged_on_a_hidden_branch, committed_again, deleted],
)
def test_what_comes_to_be_held_between_a_plan_by_rules_and_its_sweep_is_kept(here, expiring, move):
    here.old, first, planned = expiring
    here.root = here.ask("GET", "refs", "main", "commits", amount=10)["results"][-1]["id"]
    move(here, first)
    planned.sweep(confirm=True, max_share=1)
    assert here.old in here.stored()


@pytest.mark.parametrize("kind", [HoldKind.REF, HoldKind.ADDRESS])
def test_orders_count_beside_the_servers_rules(here, kind):
    old = here.upload("main", "a", b"old")
    first = here.subject.commit("main", "first")
    here.wait(20 * DAY)
    here.upload("main", "a", b"newer")
    here.subject.commit("main", "second")
    here.wait(20 * DAY)
    here.upload("main", "a", b"newest")
    here.subject.commit("main", "third")
    here.wait(2 * DAY)
    rules(here, 1)
    planned = here.api.gc.plan(rules="server")
    assert planned.report.removed.objects >= 1
    here.repository.orders.add(kind, first if kind is HoldKind.REF else old, reason="", until=None)
    planned.sweep(confirm=True, max_share=1)
    assert old in here.stored()


# ---- branches that go


STALE = {"rules": {}, "branches": [{"match": "tmp-*", "idle_days": 30}]}


def moved_on(here):
    here.upload("tmp-1", "work", b"2")
    here.subject.commit("tmp-1", "work")


def worked_on(here):
    here.upload("tmp-1", "work", b"2")


def ordered_at(here):
    here.repository.orders.add(HoldKind.REF, "tmp-1", reason="", until=None)


@pytest.mark.parametrize("work", [moved_on, worked_on, ordered_at])
def test_a_branch_that_somebody_works_on_since_the_plan_stays(here, work):
    here.upload("main", "a", b"1")
    here.subject.commit("main", "first")
    here.subject.branch("tmp-1", "main")
    here.api.lifecycle.plan(policy=STALE)
    here.wait(40 * DAY)
    planned = here.api.lifecycle.plan(policy=STALE)
    assert planned.report.refs
    work(here)
    sweeps_all(planned)
    assert "tmp-1" in {one["id"] for one in here.ask("GET", "branches")["results"]}


def test_the_default_branch_is_not_deleted_whatever_a_policy_matches(here):
    here.upload("main", "a", b"1")
    here.subject.commit("main", "first")
    assert history.protects(here.repository._core, "main") == "it is the default branch"
    everything = {"rules": {}, "branches": [{"match": "*", "idle_days": 30}]}
    here.api.lifecycle.plan(policy=everything)
    here.wait(40 * DAY)
    assert here.api.lifecycle.plan(policy=everything).report.refs == {}


# ---- records


@pytest.fixture
def again(here, tmp_path):
    """A function: the same repository with other records, or with a copy of these as they are."""
    made = []

    def opens(*, copied):
        db = tmp_path / f"{len(made)}.db"
        if copied:
            with closing(sqlite3.connect(tmp_path / "records.db")) as records:
                records.execute("VACUUM INTO ?", [str(db)])
        made.append(opened(here.subject.uri, f"sqlite://{db}", here.subject.clock))
        return OpenRepository(Workplace(Opened(made[-1], lambda: None), HERE))

    here.upload("main", "kept", b"1")
    here.subject.commit("main", "kept")
    yield opens
    for one in made:
        one.records.close()


def ordered(here):
    """Garbage that somebody orders to be kept."""
    address = garbage(here, b"ordered")
    here.wait(3 * DAY)
    here.repository.orders.add(HoldKind.ADDRESS, address, reason="", until=None)
    return address


def test_a_copy_of_the_records_is_refused_however_often_it_is_tried(here, again):
    garbage(here)
    here.wait(3 * DAY)
    here.api.gc.run(confirm=True, max_share=1)
    copy = again(copied=True)
    here.api.gc.run(confirm=True, max_share=1)  # no more often than the copy tries
    for _ in range(3):
        with pytest.raises(RecordsOutdated):
            copy.gc.run(confirm=True, max_share=1, after_restore=True)


def test_and_a_copy_from_before_an_order(here, again):
    here.api.gc.run(confirm=True, max_share=1)
    copy, kept = again(copied=True), ordered(here)
    for _ in range(3):
        with pytest.raises(RecordsOutdated):
            copy.gc.run(confirm=True, max_share=1, after_restore=True)
    assert kept in here.stored()


def test_records_that_do_not_know_of_an_order_are_refused_though_nothing_was_removed_yet(here, again):
    kept, other = ordered(here), again(copied=False)
    with pytest.raises(OtherRecords):
        other.gc.run(confirm=True, max_share=1)
    assert kept in here.stored()
    here.api.gc.run(confirm=True, max_share=1)
    assert kept in here.stored()


def test_once_they_are_handed_over_the_new_records_count_and_the_old_ones_do_not(here, again):
    ordered(here)
    copy, other = again(copied=True), again(copied=False)
    here.repository.orders.add(HoldKind.PREFIX, "logs/", reason="", until=None)
    here.wait(DAY)
    for api in (copy, other):
        repository = api._place.repository
        adopt(repository, confirm=True)
        with pytest.raises(Conflict, match="there is nothing to do"):
            adopt(repository, confirm=True)
        repository.gate.check()
        here.wait(DAY)
    for repository in (here.repository, copy._place.repository):
        with pytest.raises((OtherRecords, RecordsOutdated)):
            repository.gate.check()


def test_orders_at_once_are_all_made(here):
    here.upload("main", "kept", b"1")
    here.subject.commit("main", "kept")
    with ThreadPoolExecutor(4) as threads:
        made = list(
            threads.map(lambda n: here.repository.orders.add(HoldKind.PREFIX, f"{n}/", reason="", until=None), range(8))
        )
    assert {one.id for one in here.repository.orders.every()} == {one.id for one in made}
    here.repository.gate.check()
