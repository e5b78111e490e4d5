"""Jobs on a repository of a lakeFS server: its own rules, lifecycle, stale branches, the trash."""

import io
import json

import pyarrow.parquet as pq
import pytest

from desilt.errors import BadRequest, StorageFailed
from desilt.objects.local import LocalStore
from lakefs_world import DAY, world


@pytest.fixture
def here(tmp_path, monkeypatch):
    with world(tmp_path, monkeypatch) as found:
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
    assert (said["start_time"], said["cutoff_time"]) == ("2026-01-03T00:00:00Z", "2026-01-01T23:50:00Z")
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


def test_purge_looks_again_what_is_held(here, replaced):
    rules(here, 15)
    report = here.api.gc.run(rules="server", confirm=True, max_share=1)
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


POLICY = {"rules": {"logs": {"prefix": "logs/", "days": 30}}}


def test_lifecycle_moves_what_is_old_to_the_trash(here):
    old = here.upload("main", "logs/old", b"1")
    here.subject.commit("main", "old")
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
