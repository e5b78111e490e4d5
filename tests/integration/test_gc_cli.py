"""`desilt gc`, `sweep`, `runs`, `restore` and `purge` as people and programs meet them: words, exit codes, JSON.

Only the first two tests need Spark; what a command says does not depend on where the work is done.
"""

import errno
import hmac
import io
import json
import os
import re
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from desilt.errors import StorageFailed
from desilt.objects.local import LocalStore
from desilt.records import locks
from desilt.runs.facts import written
from desilt.runs.plan_files import sections
from desilt.sweep import delete as removing
from words import later, put, stored

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = ("--confirm", "--max-share", "100%")


@pytest.fixture
def here(monkeypatch):
    """What fails is not waited for."""
    monkeypatch.setattr(removing, "PAUSES", (0.0,))


def with_garbage(repo, count=3, kept=7):
    """``count`` objects that go, beside others that stay; their addresses."""
    for number in range(kept - 1):
        put(repo, "main", f"kept{number}")
    repo.commit("main", "kept")
    lost = {put(repo, "main", f"lost{number}") for number in range(count)}
    repo.reset("main")
    put(repo, "main", "staged")
    later(repo, days=5)
    return lost


def sql(repo, statement, *values):
    with sqlite3.connect(repo.database.path) as connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


def told(answer):
    """The JSON of a command that went well."""
    code, out, err = answer
    assert (code, err) == (0, "")
    return json.loads(out)


def refused(answer, says, code=10):
    """One line on stderr, nothing on stdout."""
    assert answer[0] == code, answer
    assert answer[1] == ""
    assert re.fullmatch(r"error: [^\n]*\n", answer[2])
    assert says in answer[2]


# ---- on Spark


@pytest.mark.usefixtures("spark")
def test_a_plan_is_swept_listed_shown_and_swept_again(cli, repo, uri):
    lost = with_garbage(repo)
    planned = told(cli("gc", "plan", uri, "--json"))
    assert planned["removed"] == {"objects": 3, "bytes": 3}
    assert planned["kept"] == {"objects": 7, "bytes": 7}
    assert planned["swept"] is None
    assert lost <= stored(repo)
    swept = told(cli("sweep", uri, planned["run"], "--confirm", "--json"))
    assert swept["run"] == planned["run"]
    assert swept["swept"] == {
        "state": "swept",
        "action": "delete",
        "asked": 3,
        "removed": 3,
        "gone": 0,
        "failed": 0,
        "held_again": 0,
        "bytes": 3,
    }
    assert not lost & stored(repo)
    assert told(cli("runs", "show", uri, "last", "--json")) == swept
    assert told(cli("sweep", uri, planned["run"], "--json")) == swept


@pytest.mark.usefixtures("spark")
def test_what_went_to_the_trash_is_restored_and_purged(cli, repo, uri):
    lost = with_garbage(repo)
    code, out, _ = cli("gc", "run", uri, "--to", "trash", "--confirm")
    assert code == 0
    assert "3 objects of 3 B moved to the trash" in out
    assert not lost & stored(repo)
    code, out, _ = cli("restore", uri, "last")
    assert (code, out) == (0, "3 objects of 3 B restored\n")
    assert lost <= stored(repo)
    later(repo, days=2)
    assert cli("gc", "run", uri, "--to", "trash", *SURE)[0] == 0
    assert "3 objects of 3 B" in cli("purge", uri, "--older-than", "0s")[1]


# ---- happy paths


@pytest.mark.usefixtures("here")
def test_a_plan_says_what_goes_why_what_stays_and_how_to_go_on(cli, repo, uri):
    with_garbage(repo)
    before = stored(repo)
    code, out, err = cli("gc", "plan", uri)
    assert (code, err) == (0, "")
    assert "looked at 10 objects of 10 B" in out
    assert "Would go: 3 objects of 3 B, 30% of all bytes" in out
    assert re.search(r"main +unreferenced +3", out)
    assert re.search(r"committed +6 ", out)
    assert re.search(r"staged +1 ", out)
    assert "A sweep would be refused as it is:\n  this policy of 'gc' was never carried out here before" in out
    assert "--confirm" in out
    run_id = re.search(r"desilt sweep (\S+) (\S+) --confirm\n", out)
    assert run_id[1] == uri
    assert stored(repo) == before
    assert cli("sweep", uri, run_id[2], "--confirm")[0] == 0
    assert len(before - stored(repo)) == 3


@pytest.mark.usefixtures("here")
def test_a_plan_that_nothing_speaks_against_does_not_say_so(cli, repo, uri):
    with_garbage(repo)
    out = cli("gc", "plan", uri, "--confirm")[1]
    assert "refused" not in out
    assert "desilt sweep" in out


@pytest.mark.usefixtures("here")
def test_a_run_removes_and_the_next_finds_nothing(cli, repo, uri):
    lost = with_garbage(repo)
    before = stored(repo)
    code, out, _ = cli("gc", "run", uri, "--confirm")
    assert code == 0
    assert "Done: 3 objects of 3 B removed" in out
    assert before - stored(repo) == lost
    code, out, _ = cli("gc", "run", uri)
    assert code == 0
    assert "Nothing is to go." in out
    assert "looked at 1 object of 1 B" in out  # what is staged may yet become garbage
    assert "6 more are known from an earlier run to be held by commits" in out
    assert "7 objects" in cli("gc", "plan", uri, "--full")[1]


@pytest.mark.usefixtures("here")
def test_json_of_a_run_has_what_the_page_has(cli, repo, uri):
    with_garbage(repo)
    report = told(cli("gc", "run", uri, "--confirm", "--json"))
    assert report["swept"]["removed"] == 3
    assert report["job"] == "gc"
    assert report["repository"] == "demo"
    assert report["remove"] == {"main": {"unreferenced": {"objects": 3, "bytes": 3}}}
    assert report["keep"] == {"committed": {"objects": 6, "bytes": 6}, "staged": {"objects": 1, "bytes": 1}}
    assert report["stored"] == {"objects": 10, "bytes": 10}
    assert {"commits", "ranges", "staged entries", "open tickets", "generation"} <= report["inputs"].keys()
    folder = f"{repo.prefix}_desilt/runs/gc/{report['run']}/"
    assert json.loads(repo.store.get(folder + "report.json")) == report
    assert b"<html" in repo.store.get(folder + "report.html").lower()


@pytest.mark.usefixtures("here")
def test_only_one_branch_is_collected(cli, repo, uri):
    repo.create_branch("dev", "main")
    theirs = put(repo, "dev", "lost")
    repo.reset("dev")
    ours = with_garbage(repo)
    assert told(cli("gc", "plan", uri, "--branch", "dev", "--json"))["removed"]["objects"] == 1
    assert cli("gc", "run", uri, "--branch", "dev", *SURE)[0] == 0
    assert theirs not in stored(repo)
    assert ours <= stored(repo)


@pytest.mark.usefixtures("here")
def test_a_deleted_branch_is_named_by_its_uid(cli, repo, uri):
    branch = repo.create_branch("dev", "main")
    lost = put(repo, "dev", "lost")
    repo.delete_branch("dev", force=True)
    with_garbage(repo)
    assert told(cli("gc", "run", uri, "--branch", branch.uid, *SURE, "--json"))["swept"]["removed"] == 1
    assert lost not in stored(repo)


@pytest.mark.usefixtures("here")
def test_a_full_run_lists_everything(cli, repo, uri):
    with_garbage(repo)
    cli("gc", "run", uri, "--confirm")
    assert told(cli("gc", "plan", uri, "--json"))["inputs"]["listed"] == 0
    assert told(cli("gc", "plan", uri, "--full", "--json"))["inputs"]["listed"] == 7


def inventory(repo, path, *, without=(), age=timedelta(hours=1)):
    """A listing that somebody else made, as Parquet."""
    rows = [batch for batch in repo.store.list(f"{repo.prefix}branches/") if batch.num_rows]
    table = pa.Table.from_batches(rows)
    table = table.filter(pa.array([key.removeprefix(repo.prefix) not in without for key in table["key"].to_pylist()]))
    table = table.rename_columns(["key", "size", "last_modified_date"])
    pq.write_table(table, path)
    taken = (repo.clock() - age).timestamp()
    os.utime(path, (taken, taken))
    return path


@pytest.mark.usefixtures("here")
def test_an_inventory_takes_the_place_of_a_listing(cli, repo, uri, place):
    lost = sorted(with_garbage(repo))
    given = inventory(repo, place / "given.parquet", without=lost[:1])
    report = told(cli("gc", "run", uri, "--inventory", given, "--confirm", "--json"))
    assert report["swept"]["removed"] == 2
    assert set(lost) & stored(repo) == {lost[0]}
    assert told(cli("gc", "run", uri, *SURE, "--json"))["swept"]["removed"] == 1  # the next one looks for itself


@pytest.mark.usefixtures("here")
def test_an_old_inventory_is_refused_and_a_wrong_one_names_its_fault(cli, repo, uri, place):
    with_garbage(repo)
    given = inventory(repo, place / "given.parquet", age=timedelta(hours=49))
    refused(cli("gc", "run", uri, "--inventory", given, *SURE), "--max-inventory-age")
    assert cli("gc", "plan", uri, "--inventory", given, "--max-inventory-age", "50h")[0] == 0
    refused(cli("gc", "plan", uri, "--inventory", given, "--branch", "main"), "--branch", code=2)
    assert cli("gc", "plan", uri, "--inventory", place / "nosuch.parquet")[0] in (1, 2)


@pytest.mark.usefixtures("here")
def test_looking_back_keeps_what_was_young_then(cli, repo, uri):
    with_garbage(repo)
    now = (START + timedelta(hours=3)).isoformat()
    report = told(cli("gc", "plan", uri, "--now", now, "--json"))
    assert report["removed"]["objects"] == 0
    assert report["keep"]["young"]["objects"] == 3


# ---- runs


@pytest.mark.usefixtures("here")
def test_runs_are_listed_the_newest_first_in_both_spellings(cli, repo, uri):
    with_garbage(repo)
    planned = told(cli("gc", "plan", uri, "--json"))["run"]
    swept = told(cli("gc", "run", uri, "--confirm", "--json"))["run"]
    for words in (["runs"], ["runs", "list"]):
        code, out, err = cli(*words, uri)
        assert (code, err) == (0, "")
        lines = [line.split("\t") for line in out.splitlines()]
        assert [line[0] for line in lines] == [swept, planned]
        assert [line[3] for line in lines] == ["swept", "planned"]
        rows = [json.loads(line) for line in cli(*words, uri, "--json")[1].splitlines()]
        assert [row["run"] for row in rows] == [swept, planned]
        assert (rows[0]["planned"], rows[0]["removed"], rows[0]["size"], rows[0]["failed"]) == (3, 3, 3, 0)
        assert (rows[1]["planned"], rows[1]["removed"], rows[1]["bytes_planned"]) == (3, 0, 3)
        assert cli(*words, uri, "--job", "lifecycle")[1] == ""
    assert cli("runs", "--json", uri) == cli("runs", "list", uri, "--json")


@pytest.mark.usefixtures("here")
def test_a_repository_without_runs_has_none(cli, uri):
    assert cli("runs", uri)[:2] == (0, "")
    refused(cli("runs", "show", uri, "last"), "desilt runs", code=1)


@pytest.mark.usefixtures("here")
def test_a_run_is_shown_with_what_became_of_it(cli, repo, uri):
    with_garbage(repo)
    run_id = told(cli("gc", "plan", uri, "--json"))["run"]
    assert "Would go: 3 objects" in cli("runs", "show", uri, run_id)[1]
    cli("sweep", uri, run_id, "--confirm")
    out = cli("runs", "show", uri, run_id[:-2])[1]
    assert "Planned to go: 3 objects" in out
    assert "Done: 3 objects of 3 B removed" in out


@pytest.mark.usefixtures("here")
def test_a_run_whose_folder_is_gone_is_still_on_record(cli, repo, uri, place):
    with_garbage(repo)
    run_id = told(cli("gc", "run", uri, "--confirm", "--json"))["run"]
    shutil.rmtree(place / "lake" / repo.prefix / "_desilt" / "runs")
    (row,) = map(json.loads, cli("runs", uri, "--json")[1].splitlines())
    assert (row["run"], row["state"], row["removed"]) == (run_id, "swept", 3)


# ---- trash


@pytest.mark.usefixtures("here")
def test_json_of_restore_and_purge(cli, repo, uri):
    lost = sorted(with_garbage(repo))
    cli("gc", "run", uri, "--to", "trash", "--confirm")
    back = told(cli("restore", uri, "last", "--prefix", lost[0], "--json"))
    assert back == {"restored": 1, "bytes": 1, "missing": 0, "failed": 0}
    assert told(cli("purge", uri, "--json")) == {"objects": 0, "bytes": 0, "failed": 0, "left": 0, "held": 0}
    later(repo, days=7)
    assert told(cli("purge", uri, "--json")) == {"objects": 2, "bytes": 2, "failed": 0, "left": 0, "held": 0}
    assert lost[0] in stored(repo)


@pytest.mark.usefixtures("here")
def test_the_trash_is_emptied_by_age_or_run(cli, repo, uri):
    with_garbage(repo)
    run_id = told(cli("gc", "run", uri, "--to", "trash", "--confirm", "--json"))["run"]
    assert "0 objects of 0 B" in cli("purge", uri, "--run", run_id)[1]
    assert "3 objects of 3 B" in cli("purge", uri, "--run", run_id, "--older-than", "0s")[1]
    refused(cli("purge", uri, "--run", "nosuch"), "'nosuch'", code=1)
    refused(cli("purge", uri, "--older-than", "soon"), "'soon'", code=2)


@pytest.mark.usefixtures("here")
def test_a_run_that_deleted_is_not_restored(cli, repo, uri):
    with_garbage(repo)
    cli("gc", "run", uri, "--confirm")
    refused(cli("restore", uri, "last"), "--to trash", code=1)


# ---- exit codes


@pytest.fixture
def stubborn(monkeypatch):
    """A list of addresses whose objects the disk does not let go."""
    kept, move, unlink = [], LocalStore._move, os.unlink

    def not_moved(self, key, *more):
        if any(key.endswith(one) for one in kept):
            raise StorageFailed(f"{key}: Operation not permitted")
        return move(self, key, *more)

    def not_unlinked(name, *, dir_fd=None):
        if dir_fd is not None and any(one.endswith(f"/{name}") for one in kept):
            raise PermissionError(errno.EPERM, "Operation not permitted", name)
        return unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", not_unlinked)
    monkeypatch.setattr(LocalStore, "_move", not_moved)
    return kept


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("to", ["delete", "trash"])
def test_swept_in_part_is_3_and_the_next_run_tries_again(cli, repo, uri, stubborn, to):
    lost = sorted(with_garbage(repo))
    stubborn.append(lost[1])
    code, out, _ = cli("gc", "run", uri, "--to", to, "--confirm")
    assert code == 3
    assert "1 failed, to be tried again by the next run" in out
    assert set(lost) & stored(repo) == {lost[1]}
    assert cli("sweep", uri, "last")[0] == 3  # told again, not tried again
    assert '"state": "swept in part"' in cli("runs", uri, "--json")[1]
    stubborn.clear()
    assert told(cli("gc", "run", uri, *SURE, "--json"))["swept"]["removed"] == 1
    assert not set(lost) & stored(repo)


@pytest.mark.usefixtures("here")
def test_a_restore_and_a_purge_that_fail_in_part_are_3(cli, repo, uri, stubborn):
    lost = sorted(with_garbage(repo))
    cli("gc", "run", uri, "--to", "trash", "--confirm")
    stubborn.append(lost[1])
    code, out, _ = cli("restore", uri, "last")
    assert (code, out) == (3, "2 objects of 2 B restored; 1 failed, try again\n")
    later(repo, days=8)
    code, out, _ = cli("purge", uri)
    assert (code, out) == (0, "0 objects of 0 B of 1 run removed for good; 1 left, on their way back\n")
    stubborn.clear()
    assert cli("restore", uri, "last")[0] == 0
    later(repo, days=3)
    cli("gc", "run", uri, "--to", "trash", *SURE)
    later(repo, days=8)
    stubborn.append(lost[1])
    code, out, _ = cli("purge", uri)
    assert code == 3
    assert "2 objects of 2 B" in out
    assert "1 failed, try again" in out
    stubborn.clear()
    assert cli("purge", uri)[0] == 0


class TestRefused:
    """Exit code 10, one line that names the way out, and every object still there."""

    @pytest.fixture(autouse=True)
    def _nothing_goes(self, here, repo):  # noqa: ARG002
        with_garbage(repo)
        before = stored(repo)
        yield
        assert stored(repo) == before

    def plan(self, cli, uri, *options):
        return told(cli("gc", "plan", uri, "--json", *options))["run"]

    def test_the_first_run(self, cli, uri):
        refused(cli("gc", "run", uri), "--confirm")
        refused(cli("sweep", uri, "last"), "--confirm")

    def test_a_plan_that_is_too_old(self, cli, repo, uri):
        run_id = self.plan(cli, uri)
        later(repo, hours=24, seconds=1)
        refused(cli("sweep", uri, run_id, *SURE), "--max-plan-age")
        later(repo, days=1)
        refused(cli("sweep", uri, run_id, *SURE, "--max-plan-age", "47h"), "the limit is 1 day")

    def test_too_large_a_share(self, cli, uri):
        refused(cli("gc", "run", uri, "--confirm", "--max-share", "25%"), "30%, the limit is 25%")
        refused(cli("gc", "run", uri, "--confirm", "--max-share", "0%"), "3 of 10 objects")

    def test_too_many_objects(self, cli, uri):
        refused(cli("gc", "run", uri, *SURE, "--max-objects", "2"), "--max-objects")
        refused(cli("gc", "run", uri, *SURE, "--max-objects", "0"), "3 objects would go, the limit is 0")

    def test_a_database_that_was_restored_from_a_copy(self, cli, repo, uri):
        repo.database.close()
        copy = repo.database.path.read_bytes()
        repo.create_tag("then", "main")
        repo.create_tag("later", "main")
        run_id = self.plan(cli, uri)
        repo.database.close()
        for file in repo.database.path.parent.glob("desilt.db*"):
            file.unlink()
        repo.database.path.write_bytes(copy)
        for words in (["gc", "run", uri], ["sweep", uri, run_id], ["purge", uri], ["gc", "plan", uri]):
            refused(cli(*words, *(SURE if words[0] != "purge" and "plan" not in words else [])), "desilt lake recover")
        code, out, _ = cli("lake", "recover", uri, "--dry-run")
        assert code == 0
        assert "tag 'later' made" in out
        assert cli("lake", "recover", uri)[0] == 0
        assert cli("gc", "plan", uri)[0] == 0

    def test_an_address_that_is_no_object_of_the_repository(self, cli, repo, uri):
        """Even in a plan whose hashes are right."""
        run_id = self.plan(cli, uri)
        root = f"{repo.prefix}_desilt/runs/gc/{run_id}/"
        facts = json.loads(repo.store.get(root + "plan.json"))
        (file,) = facts["steps"][0]["files"]
        rows = pq.read_table(io.BytesIO(repo.store.get(file["key"])))
        for address in ("_lakefs/x", "branches/../../other/x", f"branches/{'0' * 20}/x", "../outside"):
            addresses = pa.array([address, *rows["address"].to_pylist()[1:]], rows.schema.field("address").type)
            forged = rows.set_column(rows.schema.get_field_index("address"), rows.schema.field("address"), addresses)
            sink = io.BytesIO()
            pq.write_table(forged, sink)
            repo.store.put(file["key"], [sink.getvalue()])
            file["sections"] = written(sections(sink.getvalue()))
            facts.pop("signed", None)
            said = b"plan\n" + json.dumps(facts, sort_keys=True).encode()
            facts["signed"] = hmac.digest(repo.secret.encode(), said, "sha256").hex()
            repo.store.put(root + "plan.json", [json.dumps(facts).encode()])
            refused(cli("sweep", uri, run_id, *SURE), "not an object of this repository")

    def test_a_plan_rewritten_together_with_its_hashes(self, cli, repo, uri):
        """Without the repository's secret, nobody makes one that is believed."""
        run_id = self.plan(cli, uri)
        kept = repo.stat("main", "staged").address
        root = f"{repo.prefix}_desilt/runs/gc/{run_id}/"
        facts = json.loads(repo.store.get(root + "plan.json"))
        (file,) = facts["steps"][0]["files"]
        rows = pq.read_table(io.BytesIO(repo.store.get(file["key"])))
        addresses = pa.array([kept, *rows["address"].to_pylist()[1:]], rows.schema.field("address").type)
        forged = rows.set_column(rows.schema.get_field_index("address"), rows.schema.field("address"), addresses)
        sink = io.BytesIO()
        pq.write_table(forged, sink)
        repo.store.put(file["key"], [sink.getvalue()])
        file["sections"] = written(sections(sink.getvalue()))
        for secret in (b"", b"guessed", None):
            facts.pop("signed", None)
            said = b"plan\n" + json.dumps(facts, sort_keys=True).encode()
            facts["signed"] = hmac.digest(secret, said, "sha256").hex() if secret is not None else ""
            repo.store.put(root + "plan.json", [json.dumps(facts).encode()])
            code, _, err = cli("sweep", uri, run_id, *SURE)
            assert (code, "not what was written; plan again" in err) == (1, True)
        assert b"".join(repo.get("main", "staged")) == b"x"

    def test_a_plan_whose_rows_were_changed(self, cli, repo, uri):
        run_id = self.plan(cli, uri)
        root = f"{repo.prefix}_desilt/runs/gc/{run_id}/"
        (file,) = json.loads(repo.store.get(root + "plan.json"))["steps"][0]["files"]
        repo.store.put(file["key"], [repo.store.get(file["key"]) + b"."])
        refused(cli("sweep", uri, run_id, *SURE), "not what was planned", code=1)

    def test_another_run_at_work_is_11(self, cli, repo, uri):
        run_id = self.plan(cli, uri)
        with locks.held(repo.database, repo.uid, run="some-run"):
            for words in (["gc", "run", uri, *SURE], ["sweep", uri, run_id, *SURE], ["purge", uri]):
                refused(cli(*words), "run some-run is at work", code=11)
            assert cli("gc", "plan", uri)[0] == 0  # which needs no lock
            assert cli("runs", uri)[0] == 0

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--max-share", "3"], "write 30%"),
            (["--max-share", "0.3"], "write 30%"),
            (["--max-share", "101%"], "write 30%"),
            (["--max-share", "-1%"], "write 30%"),
            (["--max-share", "nan%"], "write 30%"),
            (["--max-plan-age", "x"], "90m, 12h or 7d"),
            (["--max-plan-age", "-1d"], "90m, 12h or 7d"),
            (["--max-plan-age", "1"], "90m, 12h or 7d"),
            (["--max-objects", "-1"], "--max-objects"),
            (["--max-objects", "many"], "--max-objects"),
            (["--now", "yesterday"], "'yesterday' is not a time"),
            (["--now", "2026-01-03T00:00:00"], "no time zone"),
            (["--now", "1960-01-01T00:00:00Z"], "1970"),
            (["--branch", "nosuch"], "'nosuch' is neither a branch"),
            (["--to", "heaven"], "heaven"),
            (["--max-inventory-age", "old"], "90m, 12h or 7d"),
            (["--nosuch"], "--nosuch"),
        ],
        ids=str,
    )
    def test_bad_values_are_2(self, cli, uri, options, says):
        refused(cli("gc", "run", uri, *SURE, *options), says, code=2)

    def test_a_run_that_is_not_there_is_1_and_one_that_is_not_clear_2(self, cli, uri):
        refused(cli("sweep", uri, "last", *SURE), "desilt runs", code=1)
        one = self.plan(cli, uri)
        assert self.plan(cli, uri)[:5] == one[:5]
        for words in (["sweep"], ["runs", "show"]):
            refused(cli(*words, uri, "nosuch"), "'nosuch'", code=1)
            refused(cli(*words, uri, one[:5]), "2 runs begin with", code=2)
        refused(cli("restore", uri, "nosuch"), "'nosuch'", code=1)
        refused(cli("restore", uri, one), "no swept run", code=1)  # a plan has nothing to restore

    def test_an_empty_name_of_a_run_is_none(self, cli, uri):
        self.plan(cli, uri)
        assert cli("sweep", uri, "", *SURE)[0] in (1, 2)

    def test_an_empty_name_of_a_branch_is_none(self, cli, uri):
        assert cli("gc", "run", uri, "--branch", "", *SURE)[0] == 2


@pytest.mark.usefixtures("here")
def test_where_nothing_is_held_everything_would_go_and_has_to_be_allowed(cli, repo, uri):
    lost = {put(repo, "main", f"lost{number}") for number in range(3)}
    repo.reset("main")
    later(repo, days=5)
    refused(cli("gc", "run", uri, *SURE), "--allow-empty")
    assert stored(repo) == lost
    assert cli("gc", "run", uri, *SURE, "--allow-empty")[0] == 0
    assert stored(repo) == set()


@pytest.mark.usefixtures("here")
def test_what_went_within_a_day_counts_along(cli, repo, uri):
    with_garbage(repo, count=3, kept=7)
    assert cli("gc", "run", uri, "--confirm")[0] == 0  # 3 of 10
    put(repo, "main", "more")
    repo.reset("main", path="more")
    sql(repo, "UPDATE repositories SET manual_now = manual_now + 88200000000")  # 24.5 hours: what is new is old enough
    sql(repo, "UPDATE runs SET started_at = started_at + 3600000000, ended_at = ended_at + 3600000000")
    sql(repo, "UPDATE batches SET recorded_at = recorded_at + 3600000000")
    refused(cli("gc", "run", uri), "3 went in the last day")
    assert cli("gc", "run", uri, "--max-share", "40%")[0] == 0


@pytest.mark.usefixtures("here")
def test_what_went_just_now_by_an_older_plan_counts_along(cli, repo, uri):
    with_garbage(repo, count=3, kept=7)
    run_id = told(cli("gc", "plan", uri, "--json"))["run"]
    put(repo, "main", "more")
    repo.reset("main", path="more")
    later(repo, hours=25)
    assert cli("sweep", uri, run_id, "--confirm", "--max-plan-age", "2d")[0] == 0  # 3 of 10, now
    refused(cli("gc", "run", uri), "3 went in the last day")


@pytest.mark.usefixtures("here")
def test_a_run_that_was_cut_off_is_finished_by_the_next_one(cli, repo, uri, monkeypatch):
    lost = with_garbage(repo)

    def dying(_self, _keys, **_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "delete_many", dying)
        assert cli("gc", "run", uri, "--confirm")[0] == 130
    assert lost <= stored(repo)
    assert '"state": "sweeping"' in cli("runs", uri, "--json")[1]
    code, out, err = cli("gc", "run", uri)
    assert code == 0
    assert "which was cut off, is finished now" in err
    assert "Nothing is to go" in out
    assert not lost & stored(repo)


@pytest.mark.usefixtures("here")
def test_what_somebody_holds_again_is_kept_and_said_so(cli, repo, uri):
    repo.put("main", "a", b"old")
    address = repo.stat("main", "a").address
    lost = with_garbage(repo)
    run_id = told(cli("gc", "plan", uri, "--json"))["run"]
    assert address not in lost
    handed = repo.physical_address("main", "again")
    sql(repo, "UPDATE tickets SET address = ? WHERE address = ?", min(lost), handed.ticket.address)
    code, out, _ = cli("sweep", uri, run_id, *SURE)
    assert code == 0
    assert "2 objects of 2 B removed; 1 kept after all: something holds them by now" in out
    assert lost & stored(repo) == {min(lost)}


@pytest.mark.usefixtures("here")
def test_a_link_in_the_place_of_an_object_is_left_alone(cli, repo, uri, place):
    lost = sorted(with_garbage(repo))
    run_id = told(cli("gc", "plan", uri, "--json"))["run"]
    precious = place / "precious"
    precious.write_text("not ours")
    place = place / "lake" / repo.prefix / lost[0]
    place.unlink()
    place.symlink_to(precious)
    cli("sweep", uri, run_id, *SURE)
    assert place.is_symlink()
    assert precious.read_text() == "not ours"


@pytest.mark.usefixtures("here")
def test_a_link_in_the_place_of_an_object_is_told_as_a_failure(cli, repo, uri, place):
    lost = sorted(with_garbage(repo))
    run_id = told(cli("gc", "plan", uri, "--json"))["run"]
    place = place / "lake" / repo.prefix / lost[0]
    place.unlink()
    place.symlink_to(place / "nowhere")
    assert cli("sweep", uri, run_id, *SURE)[0] == 3
