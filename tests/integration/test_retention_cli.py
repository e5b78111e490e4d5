"""`desilt retention` as people use it, with bad input too; and as a step of upkeep."""

import json
from datetime import UTC, datetime

import pytest
import yaml

from words import days, put, read

START = datetime(2026, 1, 1, tzinfo=UTC)
RULES = {
    "description": "old logs",
    "rules": [{"status": "enabled", "filter": {"prefix": "main/logs/"}, "expiration": {"all": {"days": 5}}}],
}


@pytest.fixture
def aged(repo):
    """One object that expires, one that does not."""
    put(repo, "main", "logs/1", "old")
    put(repo, "main", "data/1", "kept")
    repo.commit("main", "both")
    days(repo, 10)
    return repo


@pytest.fixture
def written(place):
    """A function that writes a document down, and gives the name of its file."""

    def write(document, name="rules.json"):
        path = place / name
        path.write_text(json.dumps(document) if name.endswith(".json") else yaml.safe_dump(document))
        return path

    return write


SURE = ("--confirm", "--max-share", "100%")


def test_from_its_document_to_what_is_gone_and_back(cli, aged, uri, written):
    assert cli("retention", "set", uri, written(RULES))[1].startswith("Set 1 rule for demo. See what goes: desilt ret")
    code, out, err = cli("retention", "run", uri)
    assert (code, "never carried out here" in err) == (10, True)
    code, out, err = cli("retention", "plan", uri)
    assert (code, "Would be marked: 1 object of 3 B" in out) == (0, True)
    code, out, err = cli("retention", "run", uri, *SURE)
    assert (code, err) == (0, "")
    assert "Done: 1 object of 3 B marked, and hidden" in out
    assert "marked        1   3 B" in out
    code, out, err = cli("lake", "get", uri, "main", "logs/1")
    assert (code, "`desilt retention restore` brings it back" in err) == (1, True)
    assert "logs/1" not in cli("lake", "ls", uri, "main", "-r")[1]
    assert "logs/1" in cli("lake", "ls", uri, "main", "-r", "--gone")[1]
    code, out, err = cli("retention", "restore", uri, "--prefix", "main/logs/")
    assert (code, out) == (0, "1 object of 3 B restored\n")
    assert "The rule that marked them still stands" in err
    assert read(aged, "main", "logs/1") == "old"


def test_what_is_told_to_programs(cli, aged, uri, written, place):
    cli("retention", "set", uri, written(RULES))
    told = json.loads(cli("retention", "run", uri, *SURE, "--json", "--metrics", place / "figures.prom")[1])
    marked = told["marks"]["marked"]
    assert (marked["objects"], marked["bytes"], marked["oldest"]) == (1, 3, aged.clock().isoformat())
    assert (told["swept"]["action"], told["swept"]["removed"]) == ("mark", 1)
    days(aged, 0.5)
    cli("retention", "run", uri, "--metrics", place / "figures.prom")
    figures = (place / "figures.prom").read_text()
    assert 'desilt_marked_objects{repository="demo",state="marked"} 1' in figures
    assert 'desilt_oldest_mark_seconds{repository="demo"} 43200' in figures


@pytest.mark.parametrize("name", ["rules.json", "rules.yaml"])
def test_what_is_got_can_be_set_again(cli, aged, uri, written, place, name):
    cli("retention", "set", uri, written(RULES, name))
    got = json.loads(cli("retention", "get", uri, "--json")[1])
    assert {key: got[key] for key in RULES} == RULES
    assert got["creation_date"] == aged.clock().isoformat()
    code, out, _ = cli("retention", "get", uri)
    assert (code, yaml.safe_load(out)) == (0, RULES)
    (place / "again.yaml").write_text(out)
    assert cli("retention", "set", uri, place / "again.yaml")[0] == 0
    assert cli("retention", "set", uri, written({**RULES, "creation_date": "2020-07-01T00:00:00Z"}))[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("get",), 1, "there is no retention of 'demo'; set one with `desilt retention set`, or pass --config"),
        (("run",), 1, "set one with `desilt retention set`"),
        (("restore",), 2, "say what is to come back: --run, --prefix or --address"),
        (("restore", "--run", "nothing"), 1, "see `desilt runs`"),
        (("bucket-rule",), 2, "is not an S3 bucket, and has no lifecycle rules; there, `desilt retention run` removes"),
        (("check",), 2, "is not an S3 bucket, and has no lifecycle rules"),
    ],
)
def test_what_cannot_be_done_is_one_line_with_a_way_out(cli, uri, words, code, said):
    ended, out, err = cli("retention", words[0], uri, *words[1:])
    assert (ended, out, said in err) == (code, "", True)
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tag", "nothing"), "it has no '='; write KEY=VALUE"),
        (("--tag", "aws:mine=1"), "cannot be a tag"),
        (("--batch",), "--batch needs --account-id and --role-arn"),
        (("--batch", "--account-id", "1", "--role-arn", "x"), "is not an AWS account; write its twelve digits"),
    ],
)
@pytest.mark.usefixtures("aged")
def test_options_that_cannot_be_meant(cli, uri, written, options, said):
    cli("retention", "set", uri, written(RULES))
    code, _, err = cli("retention", "run", uri, *SURE, *options)
    assert (code, said in err) == (2, True)


@pytest.mark.usefixtures("aged")
def test_lint_tells_what_is_meant_otherwise(cli, uri, written):
    wrong = {"rules": [{**RULES["rules"][0], "filter": {"prefix": "logs/"}}]}
    code, out, _ = cli("retention", "lint", uri, written(wrong))
    assert (code, "no branch is called 'logs'" in out) == (0, True)
    everything = {"rules": [{**RULES["rules"][0], "filter": {}}]}
    code, _, err = cli("retention", "set", uri, written(everything))
    assert (code, "what its head has goes too" in err, "--confirm" in err) == (10, True, True)
    assert cli("retention", "set", uri, written(everything), "--confirm")[0] == 0
    assert cli("retention", "lint", uri, written({"rules": []}))[0] == 2


@pytest.mark.usefixtures("aged")
def test_a_document_can_be_tried_without_setting_it(cli, uri, written):
    code, out, _ = cli("retention", "plan", uri, "--config", written(RULES))
    assert (code, "Would be marked: 1 object" in out) == (0, True)
    assert cli("retention", "get", uri)[0] == 1


def test_it_is_a_step_of_upkeep(cli, aged, uri, written):
    upkeep = {"retention": {"document": RULES, "wait": "2h", "max_share": "100%"}, "gc": {}}
    assert cli("upkeep", "set", uri, written(upkeep))[0] == 0
    assert json.loads(cli("retention", "get", uri, "--json")[1])["rules"] == RULES["rules"]
    code, out, err = cli("upkeep", "run", uri, "--confirm", "retention,gc")
    assert (code, "retention" in out) == (0, True), err
    assert cli("lake", "get", uri, "main", "logs/1")[0] == 1
    days(aged, 1)
    assert cli("upkeep", "run", uri)[0] == 0
    back = json.loads(cli("retention", "restore", uri, "--prefix", "main/logs/", "--json")[1])
    assert (back["restored"], back["gone"]) == (0, 1)
    other = {"rules": [{**RULES["rules"][0], "status": "disabled"}]}
    cli("retention", "set", uri, written(other))
    code, out, err = cli("upkeep", "run", uri)
    assert (code, "was set otherwise" in out + err) == (10, True)


def test_the_ledger_is_kept_short(cli, aged, uri, written):
    cli("retention", "set", uri, written(RULES))
    cli("retention", "run", uri, *SURE, "--wait", "0s")
    days(aged, 2)
    code, out, _ = cli("retention", "vacuum", uri, "--older-than", "1d")
    assert (code, out) == (0, "0 records moved to the archive; 1 stay, since something still points to them\n")


def test_the_page_says_what_became_of_marks(cli, aged, uri, written):
    cli("retention", "set", uri, written(RULES))
    told = json.loads(cli("retention", "run", uri, *SURE, "--json")[1])
    folder = f"{aged.prefix}_desilt/runs/retention/{told['run']}/"
    page = aged.store.get(f"{folder}report.html").decode()
    for said in ("1 object (3 B) marked, and hidden", "Marked, by all runs, and what became of it", "rule 1 (all)"):
        assert said in page
