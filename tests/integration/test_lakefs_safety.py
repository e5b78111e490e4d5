"""Nothing live goes from a lakeFS server's repository: what lists leave out, orders of the last moment, copies, sleep.

In a *bucket*, branches are not listed whole, as on S3: the model is the same, and its files are in a directory.
"""

import hashlib
import sqlite3
import time
from contextlib import closing

import pytest

from desilt.api.repository import OpenRepository
from desilt.api.workplace import Workplace
from desilt.errors import Conflict, OtherRecords, PolicyReplaced, RecordsOutdated
from desilt.executors.executor import HERE
from desilt.lakefs import gate, unlisted
from desilt.records.holds import HoldKind
from desilt.repository.opening import Opened
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


# ---- between the last look and the moment


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
