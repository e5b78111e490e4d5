"""The page of a run in a browser, its plan as a table for others."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlparse

import click
import pyarrow.parquet as pq
import pytest

from desilt.lake import Lake
from desilt.lake.lake import locate
from words import committed, days, put

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def full(repo):
    """Three objects by a rule, two that nobody holds, and a branch that is gone."""
    for number in range(3):
        put(repo, "main", f"logs/{number}", "x" * number)
    repo.commit("main", "logs")
    repo.copy("main", "logs/1", "main", 'logs/copy, "quoted"')
    repo.commit("main", "a copy")
    repo.create_branch("dev", "main")
    for number in range(2):
        put(repo, "dev", f"lost {number}", "lost")
    repo.delete_branch("dev", force=True)
    days(repo, 20)
    return repo


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"logs": {"prefix": "logs/", "days": 3}}))
    return path


def planned(cli, *words):
    code, out, _ = cli(*words, "--json")
    assert code == 0
    return json.loads(out)["run"]


def test_a_plan_is_written_as_csv(cli, full, uri, policy, tmp_path):
    run = planned(cli, "lifecycle", "plan", uri, "--policy", policy)
    code, out, err = cli("runs", "export", uri, run)
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert sorted(row["path"] for row in rows) == ["logs/0", "logs/1", "logs/2"]
    assert {row["branch"] for row in rows} == {"main"}
    assert {row["rule"] for row in rows} == {"logs"}
    (twice,) = [row for row in rows if row["size"] == "1"]
    assert twice["paths"].split("\n") == ["logs/1", 'logs/copy, "quoted"']
    target = tmp_path / "plan.csv"
    code, told, _ = cli("runs", "export", uri, run, target)
    assert (code, told) == (0, f"Wrote 3 rows to {target}\n")
    assert list(csv.DictReader(target.open(newline=""))) == rows
    assert full


def test_a_plan_is_written_as_parquet(cli, full, uri, tmp_path):
    run = planned(cli, "gc", "plan", uri)
    target = tmp_path / "plan.parquet"
    assert json.loads(cli("runs", "export", uri, run, target, "--json")[1])["rows"] == 2
    table = pq.read_table(target)
    assert table["path"].to_pylist() == [None, None]
    assert {name.partition(",")[0] for name in table["branch"].to_pylist()} == {"dev"}
    assert all("deleted" in name for name in table["branch"].to_pylist())
    assert cli("runs", "export", uri, run, tmp_path / "odd.csv", "--format", "parquet")[0] == 0
    assert pq.read_table(tmp_path / "odd.csv") == table
    assert full


def test_a_plan_of_nothing_has_its_columns(cli, repo, uri):
    committed(repo, "main", a="1")
    run = planned(cli, "gc", "plan", uri)
    code, out, _ = cli("runs", "export", uri, run)
    assert (code, len(out.splitlines())) == (0, 1)
    assert "branch" in out


def test_an_expiration_is_written_commit_by_commit(cli, full, uri):
    run = planned(cli, "expire", "plan", uri, "--older-than", "1d")
    code, out, _ = cli("runs", "export", uri, run)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert {row["message"] for row in rows} >= {"logs", "a copy"}
    assert full


def test_what_cannot_be_exported_is_told(cli, full, uri):
    code, _, err = cli("runs", "export", uri, "nosuch")
    assert (code, "there is no run 'nosuch'" in err) == (1, True)
    code, _, err = cli("runs", "export", uri, planned(cli, "gc", "plan", uri), "/no/such/folder/x.csv")
    assert (code, "/no/such/folder/x.csv: No such file or directory" in err) == (1, True)
    assert full


def test_a_page_is_opened_where_it_lies(cli, full, uri, monkeypatch):
    opened = []
    monkeypatch.setattr(click, "launch", lambda place: opened.append(place) or 0)
    run = planned(cli, "gc", "plan", uri)
    code, out, _ = cli("runs", "open", uri, "last")
    assert (code, out) == (0, f"Opened {opened[0]}\n")
    page = Path(unquote(urlparse(opened[0]).path))
    assert page.is_relative_to(full.store.root)
    assert run in page.read_text()


def test_without_a_browser_it_says_where_the_page_is(cli, full, uri, monkeypatch):
    monkeypatch.setattr(click, "launch", lambda _: 1)
    run = planned(cli, "gc", "plan", uri)
    code, out, _ = cli("runs", "open", uri, run)
    assert (code, out.startswith(f"The page of run {run} is file://")) == (0, True)
    told = json.loads(cli("runs", "open", uri, run, "--print", "--json")[1])
    assert told["page"].endswith(f"/_desilt/runs/gc/{run}/report.html")
    assert full


def test_upkeeps_and_simulations_have_pages_too(cli, full, uri, policy, tmp_path):
    (tmp_path / "upkeep.yaml").write_text("gc: {}")
    upkeep = planned(cli, "upkeep", "plan", uri, "--file", tmp_path / "upkeep.yaml")
    assert json.loads(cli("runs", "open", uri, upkeep, "--print", "--json")[1])["page"].endswith("/upkeep.html")
    simulated = planned(cli, "lifecycle", "simulate", uri, "--policy", policy, "--from", "2026-01-02")
    found = json.loads(cli("runs", "open", uri, simulated[:-2], "--print", "--json")[1])
    assert found["page"].endswith("/simulation.html")
    assert full


def test_from_a_bucket_it_is_brought_here_first(cli, s3_server, fresh_postgres_url, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    place, db = f"{s3_server.create_bucket('pages')}/lake#demo", ("--db", fresh_postgres_url())
    lake = Lake.create(locate(place, db=db[1]))
    committed(lake.create_repository("demo"), "main", a="1")
    run = json.loads(cli("gc", "plan", place, *db, "--json")[1])["run"]
    told = json.loads(cli("runs", "open", place, run, *db, "--print", "--json")[1])
    assert run in Path(unquote(urlparse(told["page"]).path)).read_text()
    lake.close()


def test_what_a_collection_takes_has_the_paths_that_commits_knew_it_by(cli, full, uri):
    full.create_branch("gone", "main")
    put(full, "gone", "models/lost", "x")
    full.copy("gone", "models/lost", "gone", "models/again")
    full.commit("gone", "lost")
    full.delete_branch("gone")
    days(full, 5)
    run = planned(cli, "collect", "plan", uri)
    rows = list(csv.DictReader(io.StringIO(cli("runs", "export", uri, run)[1], newline="")))
    (lost,) = [row for row in rows if row["path"]]
    assert lost["paths"].split("\n") == ["models/again", "models/lost"]
    assert (lost["reason"], lost["rule"]) == ("collected", "collected")
