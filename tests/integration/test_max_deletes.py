"""`--max-deletes-per-second`, of every command that removes: what goes was leased; where nobody asks, nothing is.

The clock of the database stands still and a million may go in a second, so a lease is a microsecond for each object.
"""

import json
from datetime import UTC, datetime

import pytest

import desilt
from desilt.errors import BadRequest
from words import days, later, put

PACE = ("--max-deletes-per-second", "1000000")
SURE = ("--confirm", "--max-share", "100%")
LOGS = {"rules": [{"status": "enabled", "filter": {"prefix": "main/logs/"}, "expiration": {"all": {"days": 5}}}]}
COUNT = 4


@pytest.fixture(autouse=True)
def _still(monkeypatch):
    now = datetime.now(UTC)
    monkeypatch.setattr("desilt.records.sqlite.system_clock", lambda: now)


@pytest.fixture
def aged(repo):
    """Something for every job: garbage, logs, a commit that nothing reaches."""
    put(repo, "main", "data/kept")
    repo.commit("main", "data")
    repo.create_branch("gone", "main")
    for number in range(COUNT):
        put(repo, "main", f"logs/{number}")
        put(repo, "gone", f"there/{number}")
    repo.commit("main", "logs")
    repo.commit("gone", "what only it had")
    repo.delete_branch("gone")
    for number in range(COUNT):
        put(repo, "main", f"tmp/{number}")
    repo.reset("main")
    days(repo, 30)
    return repo


def leased(repo):
    """For how many objects, so far."""
    with repo.database.read() as tx:
        row = tx.one("SELECT given_out FROM delete_budgets WHERE repository = ?", repo.uid)
    return row[0] if row else 0


def done(told):
    code, out, err = told
    assert (code, err) == (0, "")
    return json.loads(out)


def test_gc_leases_what_it_deletes(aged, uri, cli):
    assert done(cli("gc", "run", uri, *SURE, *PACE, "--json"))["swept"]["removed"] == COUNT == leased(aged)


def test_without_it_there_is_not_even_a_row(aged, uri, cli):
    assert done(cli("gc", "run", uri, *SURE, "--json"))["swept"]["removed"] == COUNT
    with aged.database.read() as tx:
        assert tx.rows("SELECT * FROM delete_budgets") == []


def test_a_sweep_is_told_and_the_plan_does_not_say_it(aged, uri, cli):
    planned = done(cli("gc", "plan", uri, *PACE, "--json"))
    assert leased(aged) == 0
    assert "--max-deletes-per-second 1000000" in planned["command"]
    assert done(cli("sweep", uri, planned["run"], *SURE, "--json"))["swept"]["removed"] == COUNT
    assert leased(aged) == 0


def test_lifecycle_and_collection_lease_all_that_they_delete(aged, uri, cli, place):
    (place / "policy.json").write_text(json.dumps({"rules": {"logs": {"prefix": "logs/", "days": 7}}}))
    policy = ("--policy", place / "policy.json")
    assert done(cli("lifecycle", "run", uri, *policy, *SURE, *PACE, "--json"))["swept"]["removed"] == COUNT
    assert leased(aged) == COUNT
    for _ in range(2):
        assert cli("gc", "plan", uri)[0] == 0  # which nobody will carry out
    days(aged, 2)
    before = leased(aged)
    collected = done(cli("collect", "run", uri, "--keep-runs", "1d", *SURE, *PACE, "--json"))
    assert collected["swept"]["removed"] > COUNT  # ranges too
    assert leased(aged) - before > collected["swept"]["removed"]  # and the files of that plan


def test_the_trash_is_filled_and_emptied_by_it(aged, uri, cli):
    assert done(cli("gc", "run", uri, "--to", "trash", *SURE, *PACE, "--json"))["swept"]["removed"] == COUNT
    assert leased(aged) == COUNT
    days(aged, 8)
    assert done(cli("purge", uri, *PACE, "--json"))["objects"] == COUNT
    assert leased(aged) == 2 * COUNT


def test_retention_leases_what_it_removes_itself(aged, uri, cli, place):
    (place / "rules.json").write_text(json.dumps(LOGS))
    config = ("--config", place / "rules.json", "--wait", "1d")
    assert done(cli("retention", "run", uri, *config, *SURE, *PACE, "--json"))["swept"]["removed"] == COUNT
    assert leased(aged) == 0  # nothing has waited
    days(aged, 2)
    done(cli("retention", "run", uri, *config, *SURE, *PACE, "--json"))
    assert leased(aged) == COUNT


def test_workers_of_hard_delete_share_it(repo, uri, cli):
    assert cli("harddelete", "on", uri, "--grace", "10m", "--max-share", "100%")[0] == 0
    for number in range(COUNT + 1):
        put(repo, "main", "a", str(number))
    later(repo, minutes=11)
    assert done(cli("harddelete", "run", uri, *PACE, "--json"))["swept"]["removed"] == COUNT == leased(repo)


def test_an_upkeep_says_it_for_each_step_and_for_the_trash(aged, uri, cli, place):
    pace = "max_deletes_per_second: 1000000"
    (place / "upkeep.yaml").write_text(
        f"gc: {{to: trash, max_share: 100%, {pace}}}\ntrash: {{older_than: 1d, {pace}}}\n"
    )
    asked = ("--file", place / "upkeep.yaml", "--confirm", "gc")
    assert cli("upkeep", "run", uri, *asked)[0] == 0
    assert leased(aged) == COUNT
    days(aged, 2)
    assert cli("upkeep", "run", uri, *asked)[0] == 0
    assert leased(aged) == 2 * COUNT


@pytest.mark.parametrize("pace", ["0", "-1", "fast", "1.5"])
def test_what_is_no_pace_is_refused(aged, uri, cli, place, pace):
    for words in (("gc", "run"), ("purge",)):
        code, _, err = cli(*words, uri, "--max-deletes-per-second", pace)
        assert (code, "--max-deletes-per-second" in err) == (2, True)
    (place / "upkeep.yaml").write_text(f"trash: {{max_deletes_per_second: {pace}}}\n")
    code, _, err = cli("upkeep", "lint", uri, place / "upkeep.yaml")
    assert (code != 0, "max_deletes_per_second" in err) == (True, True)
    assert leased(aged) == 0


def test_from_python(aged, uri):
    with desilt.open(uri) as repo:
        assert repo.gc.run(confirm=True, max_share=1.0, max_deletes_per_second=1_000_000).swept.removed == COUNT
        assert leased(aged) == COUNT
        with pytest.raises(BadRequest, match="'max_deletes_per_second' is 0; give how many"):
            repo.gc.run(max_deletes_per_second=0)
        with pytest.raises(BadRequest, match="'max_deletes_per_second' is 0"):
            repo.purge(max_deletes_per_second=0)
