"""Jobs on a repository of a lakeFS server: its own rules, lifecycle, stale branches, the trash.

On a model of a server; and where ``DESILT_LAKEFS_ENDPOINT`` and the like name one that runs, on that, too.
"""

import io
import json
from datetime import timedelta

import pyarrow.parquet as pq
import pytest

from desilt.errors import BadRequest, StorageFailed
from desilt.exchange.exporting import export
from desilt.exchange.importing import take_in
from desilt.executors.executor import Nobody
from desilt.lakefs.settings import find
from desilt.lakefs.site import find_site
from desilt.objects.local import LocalStore
from desilt.repository.gate import Safety
from desilt.repository.graced import GracedGate
from exchanging import new_lake
from lakefs_world import DAY, world


@pytest.fixture(params=["model", "live"])
def here(request, tmp_path, monkeypatch):
    with world(tmp_path, monkeypatch, where=request.param) as found:
        yield found


def rules(here, days, **branches):
    told = [{"branch_id": name, "retention_days": count} for name, count in branches.items()]
    here.ask("PUT", "settings", "gc_rules", body={"default_retention_days": days, "branches": told})


@pytest.fixture
def replaced(here):
    """One path of main, committed three times, some days apart: the addresses."""
    found = []
    for number in range(3):
        found.append(here.upload("main", "a", b"x" * (number + 1)))
        here.commit("main", f"number {number}", here.subject.now())
        here.wait(10 * DAY)
    return found


def test_what_no_commit_and_no_branch_has_goes_once_it_is_old(here):
    kept = here.upload("main", "kept", b"1")
    here.subject.commit("main", "kept")
    lost = here.upload("main", "lost", b"2")
    here.subject.unstage("main")
    here.api.gc.run(confirm=True)
    assert here.stored() == {kept, lost}
    here.wait(2 * DAY)
    assert here.api.gc.run(confirm=True, max_share=1).swept.removed == 1
    assert here.stored() == {kept}


def test_the_reports_of_lakefs_own_job_are_there_too(here):
    here.upload("main", "kept", b"1")
    here.subject.commit("main", "kept")
    lost = here.upload("main", "lost", b"2")
    here.subject.unstage("main")
    here.wait(2 * DAY)
    report = here.api.gc.run(confirm=True, max_share=1)
    root = f"_lakefs/retention/gc/unified/{report.run}/"
    said = json.loads(here.repository.store.get(f"{root}summary.json"))
    assert (said["run_id"], said["success"], said["num_deleted_objects"]) == (report.run, True, 1)
    began = here.subject.now().replace(microsecond=0)
    cutoff = here.subject.now() - here.repository.grace - timedelta(minutes=10)
    assert said["start_time"] == began.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert said["cutoff_time"] == cutoff.strftime("%Y-%m-%dT%H:%M:%SZ")
    store = here.repository.store
    parts = [key for batch in store.list(f"{root}deleted/") for key in batch["key"].to_pylist()]
    rows = [row for key in parts for row in pq.read_table(io.BytesIO(store.get(key))).to_pylist()]
    assert rows == [{"address": lost}]
    assert store.get(f"{root}deleted.text/part-00000.txt").decode() == f"{lost}\n"


@pytest.mark.parametrize("days", ["idle_days", "max_age_days"])
def test_a_branch_that_nobody_works_on_goes_once_it_was_seen_for_so_long(here, days):
    here.upload("main", "a", b"1")
    old = here.subject.commit("main", "old")
    policy = {"rules": {}, "branches": [{"match": "tmp-*", days: 30}]}
    here.wait(100 * DAY)
    here.subject.branch("tmp-1", old)  # made today, on a commit of long ago
    assert here.api.lifecycle.plan(policy=policy).report.refs == {}
    here.wait(29 * DAY)
    assert here.api.lifecycle.plan(policy=policy).report.refs == {}
    here.wait(2 * DAY)
    here.api.lifecycle.run(policy=policy, confirm=True)
    assert [one["id"] for one in here.ask("GET", "branches")["results"]] == ["main"]


def test_without_rules_every_commit_holds_what_it_has(here, replaced):
    here.api.gc.run(confirm=True)
    assert here.stored() == set(replaced)


def test_what_the_servers_rules_let_go_goes_to_the_trash(here, replaced):
    rules(here, 15)
    report = here.api.gc.run(rules="server", confirm=True, max_share=1)
    assert (report.removed.objects, report.action) == (1, "trash")
    assert here.stored() == set(replaced[1:])  # the state of fifteen days ago is the second
    here.api.restore(report.run)
    assert here.stored() == set(replaced)


@pytest.mark.usefixtures("replaced")
def test_a_tag_holds_what_it_names_where_it_is_told_to(here):
    rules(here, 15)
    first = here.ask("GET", "refs", "main", "commits", amount=10)["results"][2]["id"]
    here.subject.tag("v1", first)
    assert here.api.gc.plan(rules="server", tags="hold").report.removed.objects == 0
    assert here.api.gc.plan(rules="server").report.removed.objects == 1


@pytest.mark.usefixtures("replaced")
def test_where_there_are_no_rules_that_is_said(here):
    with pytest.raises(BadRequest, match="has no rules of garbage collection"):
        here.api.gc.plan(rules="server")


def test_rules_that_were_changed_since_a_plan_stop_it(here, replaced):
    rules(here, 15)
    planned = here.api.gc.plan(rules="server")
    (row,) = planned.removals().to_pylist()
    assert (row["rule"], row["path"], row["paths"]) == ("the server's rules", None, [])
    rules(here, 300)
    with pytest.raises(Exception, match="policy"):
        planned.sweep(confirm=True, max_share=1)
    assert here.stored() == set(replaced)


def test_a_branch_that_comes_to_need_an_old_commit_keeps_what_it_has(here, replaced):
    rules(here, 15)
    planned = here.api.gc.plan(rules="server")
    first = here.ask("GET", "refs", "main", "commits", amount=10)["results"][2]["id"]
    here.subject.branch("again", first)
    assert planned.sweep(confirm=True, max_share=1).swept.held_again == 1
    assert here.stored() == set(replaced)


@pytest.mark.parametrize("level", [Safety.GRACE, Safety.CONDITIONAL])
def test_purge_looks_again_what_is_held(here, replaced, monkeypatch, level):
    """Whatever is less than one transaction of ours lets somebody come to need what is in the trash."""
    monkeypatch.setattr(GracedGate, "safety", level)
    rules(here, 15)
    report = here.api.gc.run(rules="server", confirm=True, max_share=1)
    assert report.action == "trash"
    first = here.ask("GET", "refs", "main", "commits", amount=10)["results"][2]["id"]
    here.subject.branch("again", first)
    here.wait(10 * DAY)
    assert here.api.purge(older_than="7d").objects == 0
    assert here.api.restore(report.run).restored == 1
    assert here.stored() == set(replaced)


def test_a_hold_on_a_prefix_keeps_what_the_rules_release(here, replaced):
    rules(here, 15)
    hold = here.api.holds.add(prefix="a", reason="audit")
    assert here.api.gc.run(rules="server", confirm=True, max_share=1).removed.objects == 0
    here.api.holds.lift(hold)
    here.api.holds.add(prefix="b", reason="of something else")
    assert here.api.gc.plan(rules="server").report.removed.objects == 1
    assert here.stored() == set(replaced)


def test_a_hold_on_a_prefix_that_comes_after_the_plan_keeps_it_too(here, replaced):
    rules(here, 15)
    planned = here.api.gc.plan(rules="server")
    here.api.holds.add(prefix="a", reason="audit")
    assert planned.sweep(confirm=True, max_share=1).swept.held_again == 1
    assert here.stored() == set(replaced)


def test_a_hold_on_a_prefix_keeps_what_is_in_the_trash_by_rules(here, replaced):
    rules(here, 15)
    report = here.api.gc.run(rules="server", confirm=True, max_share=1)
    here.api.holds.add(prefix="a", reason="audit")
    here.wait(10 * DAY)
    assert here.api.purge(older_than="7d").objects == 0
    here.api.restore(report.run)
    assert here.stored() == set(replaced)


@pytest.mark.parametrize(("days", "purged"), [(300, 0), (15, 1), (1, 1), (None, 0)])
@pytest.mark.usefixtures("replaced")
def test_purge_goes_on_where_rules_were_changed_and_leaves_what_todays_would_keep(here, days, purged):
    rules(here, 15)
    here.api.gc.run(rules="server", confirm=True, max_share=1)
    if days is None:
        here.ask("DELETE", "settings", "gc_rules")
    else:
        rules(here, days)
    here.wait(10 * DAY)
    assert here.api.purge(older_than="7d").objects == purged


def test_purge_goes_on_where_the_policy_was_replaced(here):
    here.upload("main", "logs/old", b"1")
    here.upload("main", "other", b"22")
    here.subject.commit("main", "old")
    here.wait(40 * DAY)
    here.api.lifecycle.set(POLICY)
    here.api.lifecycle.run(confirm=True, max_share=1)
    here.api.lifecycle.set({"rules": {"logs": {"prefix": "logs/", "days": 90}}})
    here.wait(10 * DAY)
    assert here.api.purge(older_than="7d").objects == 1


POLICY = {"rules": {"logs": {"prefix": "logs/", "days": 30}}}


def test_lifecycle_moves_what_is_old_to_the_trash(here):
    old = here.upload("main", "logs/old", b"1")
    here.subject.commit("main", "old")
    here.moves_time()
    here.wait(40 * DAY)
    kept = {here.upload("main", "logs/new", b"22"), here.upload("main", "other", b"333")}
    here.subject.commit("main", "new")
    report = here.api.lifecycle.run(policy=POLICY, confirm=True, max_share=1)
    assert (report.removed.objects, report.action) == (1, "trash")
    assert here.stored() == kept
    assert here.api.restore(report.run).restored == 1
    assert here.stored() == {*kept, old}


@pytest.mark.parametrize("job", ["expire", "collect", "retention"])
def test_what_cannot_be_done_there_is_refused_in_one_line(here, job):
    words = {"expire": {"before": "2026-01-01"}}.get(job, {})
    with pytest.raises(BadRequest, match="lakeFS server") as refused:
        here.api.job(job).plan(**words)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("lists_too", [False, True])
def test_where_the_servers_own_folder_may_not_be_read_the_server_is_asked(tmp_path, monkeypatch, lists_too):
    """Its tables come by the API; where lists of what is staged may not be read either, branches are listed."""
    get = LocalStore.get

    def denied(store, key, **words):
        mine = store.fsync  # not the server's
        if mine and key.startswith("_lakefs/") and (lists_too or not key.startswith("_lakefs/retention/")):
            raise StorageFailed(f"{key}: access denied")
        return get(store, key, **words)

    monkeypatch.setattr(LocalStore, "get", denied)
    with world(tmp_path, monkeypatch) as here:
        kept = {here.upload("main", "kept", b"1"), here.upload("main", "other", b"22")}
        here.subject.commit("main", "kept")
        kept.add(here.upload("main", "staged", b"333"))
        lost = here.upload("main", "lost", b"4444")
        here.ask("DELETE", "branches", "main", "objects", path="lost")
        here.wait(2 * DAY)
        assert here.stored() == {*kept, lost}
        here.api.gc.run(confirm=True, max_share=1)
        assert here.stored() == kept
        assert ("GET", "/repositories/{repository}/metadata/object/{kind}/{table}") in here.model.asked


@pytest.mark.usefixtures("replaced")
def test_a_report_says_by_whose_rules_what_is_committed_goes(here):
    rules(here, 15, main=300)
    assert here.api.gc.plan().report.notes == ()
    said = "What commits have goes by the server's rules: 15 days, main 300; what tags name is held"
    assert here.api.gc.plan(rules="server", tags="hold").report.notes == (said,)


@pytest.mark.usefixtures("replaced")
def test_what_went_by_the_servers_rules_is_no_longer_counted_until_it_is_back(here):
    rules(here, 15)
    before = here.api.stats().committed.objects
    report = here.api.gc.run(rules="server", confirm=True, max_share=1)
    assert here.api.stats().committed.objects == before - report.removed.objects == before - 1
    here.api.restore(report.run)
    assert here.api.stats().committed.objects == before


# ---- what is read


def test_what_is_sound_is_found_so_and_what_is_lost_is_found(here):
    lost = here.upload("main", "a", b"1")
    here.upload("main", "b", b"22")
    here.subject.commit("main", "two")
    assert here.repository.fsck(deep=False, progress=lambda *_: None).sound
    here.repository.store.delete_many([lost])
    assert not here.repository.fsck(deep=False, progress=lambda *_: None).sound


def test_pins_say_what_a_branch_and_a_staging_area_keep(here):
    here.upload("main", "a", b"1")
    here.subject.commit("main", "one")
    here.subject.branch("dev", "main")
    here.upload("dev", "b", b"22")
    here.subject.commit("dev", "two")
    here.upload("dev", "c", b"333")
    found = here.api.pins()
    assert sorted(pin.alone.bytes for pin in found.pins) == [0, 2, 3]
    assert [(group.pins, group.amount.bytes) for group in found.groups] == [(("branch dev", "branch main"), 1)]


def test_an_object_is_explained_by_its_path_and_by_its_address(here):
    address = here.upload("main", "a", b"1")
    here.subject.commit("main", "one")
    [by_path] = here.api.explain("a")
    [by_address] = here.api.explain(address)
    assert (by_path.address, by_path.verdict, by_path.paths) == (address, "committed", ("a",))
    assert (by_address.verdict, by_address.commits) == (by_path.verdict, by_path.commits)
    lost = here.upload("main", "b", b"22")
    assert here.api.explain(lost)[0].verdict == "staged"


def test_a_policy_is_judged_without_removing_anything(here):
    old = here.upload("main", "logs/old", b"1")
    other = here.upload("main", "other", b"22")
    here.subject.commit("main", "old")
    here.wait(40 * DAY)
    planned = here.api.lifecycle.plan(policy=POLICY).report
    assert (planned.removed.objects, planned.removed.bytes, planned.action) == (1, 1, "trash")
    assert here.stored() == {old, other}


def test_a_repository_is_taken_into_a_lake_and_given_back(here, tmp_path):
    for number in range(5):
        here.upload("main", f"t/{number}", b"x" * number)
    here.subject.commit("main", "five")
    here.subject.branch("dev", "main")
    here.upload("dev", "u", b"u")
    here.subject.commit("dev", "one more")
    clock, access = here.subject.clock, here.subject.access
    lake = new_lake(tmp_path / "lake", clock)
    take_in(find(here.subject.uri), lake, "taken", may_miss=False, watch=Nobody(), clock=clock)
    taken = lake.repository("taken")
    assert {one.path for one in taken.list("dev")} == {*(f"t/{number}" for number in range(5)), "u"}
    back = find(f"{here.subject.uri}-back")
    place = access.namespace if access.namespace.endswith("://") else access.namespace.rstrip("/") + "/"
    export(taken, back, namespace=place + back.repository, may_miss=False, watch=Nobody(), clock=clock)
    try:
        told = access.ask("GET", f"/repositories/{back.repository}/refs/dev/objects/ls")["results"]
        assert {(one["path"], one["size_bytes"]) for one in told} == {*((f"t/{n}", n) for n in range(5)), ("u", 1)}
    finally:
        store = find_site(back, clock=clock).store
        access.ask("DELETE", f"/repositories/{back.repository}", force="true")
        store.delete_many([key for batch in store.list() for key in batch["key"].to_pylist()])
        lake.close()
