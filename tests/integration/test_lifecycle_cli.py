"""`desilt lifecycle` as people and programs meet it: words, exit codes, JSON.

Only the first test needs Spark; what a command says does not depend on where the work is done.
"""

import io
import json
import re
import sys
from datetime import UTC, datetime, timedelta

import pytest

from desilt.testing import oracle

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = ("--confirm", "--max-share", "100%")
TMP = {"tmp": {"prefix": "tmp/", "days": 10}}


@pytest.fixture
def repo(repo):
    for path in ("data/a", "data/b", "data/c", "data/gold", "notes.md", "tmp/1", "tmp/2"):
        repo.put("main", path, path.encode())
    repo.commit("main", "first")
    repo.create_branch("dev", "main")
    repo.set_clock(START + timedelta(days=20))
    return repo


@pytest.fixture
def policy(tmp_path):
    """Write a policy; its file."""

    def write(document, name="policy.json"):
        file = tmp_path / name
        file.write_text(document if isinstance(document, str) else json.dumps(document))
        return file

    return write


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


def paths(repo, branch="main"):
    """Those whose objects are still there."""
    stored = oracle.stored(repo)
    return {entry.path for entry in repo.list(branch) if entry.address in stored}


# ---- on Spark


@pytest.mark.usefixtures("spark")
def test_a_policy_is_set_planned_swept_and_told(cli, repo, uri, policy):
    assert cli("lifecycle", "set", uri, policy(TMP))[0] == 0
    planned = told(cli("lifecycle", "plan", uri, "--json"))
    assert planned["removed"]["objects"] == 2
    assert planned["swept"] is None
    assert "tmp/1" in paths(repo)
    swept = told(cli("sweep", uri, planned["run"], "--confirm", "--json"))
    assert (swept["run"], swept["job"], swept["swept"]["removed"]) == (planned["run"], "lifecycle", 2)
    assert paths(repo) == {"data/a", "data/b", "data/c", "data/gold", "notes.md"}
    code, _, err = cli("lake", "get", uri, "main", "tmp/1")
    assert code == 1
    assert f"is gone: run {swept['run']} removed it by rule 'tmp'" in err
    assert told(cli("runs", "show", uri, "last", "--json")) == swept


# ---- set and get


def test_what_was_set_is_printed_with_its_date_and_can_be_set_again(cli, repo, uri, policy):
    code, out, err = cli("lifecycle", "set", uri, policy({**TMP, "keep": [{"glob": "*.md"}], "description": "café"}))
    assert (code, err) == (0, "")
    assert out == f"Set 1 rule for demo. See what goes: desilt lifecycle plan {uri}\n"
    code, out, _ = cli("lifecycle", "get", uri)
    assert code == 0
    assert out.startswith("# The lifecycle policy of demo, set 2026-01-21 00:00:00 UTC\ndescription: café\n")
    before = told(cli("lifecycle", "get", uri, "--json"))
    assert before["policy"]["rules"] == {
        "tmp": {"prefix": "tmp/", "days": 10, "enabled": True, "branch_days": {}, "noncurrent_only": False}
    }
    assert before["set_at"] == "2026-01-21T00:00:00.000000Z"
    assert before["repository"] == "demo"
    repo.set_clock(START + timedelta(days=21))
    again = told(cli("lifecycle", "set", uri, policy(out, "again.yaml"), "--json"))
    assert again == {
        "repository": "demo",
        "set_at": "2026-01-22T00:00:00.000000Z",
        "fingerprint": before["fingerprint"],
        "findings": [],
    }
    assert told(cli("lifecycle", "get", uri, "--json"))["policy"] == before["policy"]


def test_json_and_yaml_from_a_file_or_stdin_are_one_policy(cli, uri, policy, monkeypatch):
    document = {"old": {"prefix": "data/", "days": 30, "branch_days": {"dev": 7}}, "keep": [{"prefix": "data/gold"}]}
    text = 'old:\n  prefix: data/\n  days: 30\n  branch_days: {dev: 7}\nkeep:\n- prefix: "data/gold"\n'
    found = [told(cli("lifecycle", "set", uri, policy(document), "--json"))["fingerprint"]]
    found.append(told(cli("lifecycle", "set", uri, policy(text, "policy.yml"), "--json"))["fingerprint"])
    for said in (json.dumps(document), text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
        found.append(told(cli("lifecycle", "set", uri, "-", "--json"))["fingerprint"])
    assert len(found) == 4
    assert len(set(found)) == 1


def test_without_a_policy_there_is_none_to_get_or_go_by(cli, uri):
    refused(cli("lifecycle", "get", uri), "there is no lifecycle policy of 'demo'; set one with", code=1)
    for command in ("plan", "run"):  # and nobody waits for Spark
        refused(cli("lifecycle", command, uri), "has no lifecycle policy", code=2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": {"prefix": "x", "dayz": 3}}', "did you mean 'days'?"),
        ('{"a": {"prefix": "x", "days": 1}, "a": {"prefix": "y", "days": 1}}', "'a' is there twice"),
        ("{", "policy.json:1: this is not JSON"),
        ("{}", "it has no rules"),
    ],
    ids=str,
)
def test_a_file_that_is_no_policy_is_2_and_nothing_is_set(cli, uri, policy, text, says):
    file = policy(text)
    for words in (["set", uri, file], ["lint", uri, file], ["plan", uri, "--policy", file]):
        refused(cli("lifecycle", *words), says, code=2)
    assert cli("lifecycle", "get", uri)[0] == 1


def test_a_file_that_cannot_be_read_is_2(cli, uri, tmp_path):
    refused(cli("lifecycle", "set", uri, tmp_path / "nosuch.json"), "nosuch.json", code=2)
    (tmp_path / "latin.yaml").write_bytes(b"caf\xe9: {prefix: x, days: 1}")
    refused(cli("lifecycle", "set", uri, tmp_path / "latin.yaml"), "this is not UTF-8", code=2)


# ---- lint


def rule(prefix, days, **more):
    return {"prefix": prefix, "days": days, **more}


ERRORS = [
    ({"wide": rule("data/", 5), "gold": rule("data/gold", 50)}, "gold", "but rule 'wide' (prefix 'data/') has removed"),
    ({**TMP, "keep": [{"prefix": "glod/"}]}, "keep-1", "no path matches its prefix 'glod/'"),
    ({**TMP, "keep": [{"id": "md", "glob": "tmp/*.md"}]}, "md", "no path matches its glob 'tmp/*.md'"),
]
CONFIRMS = [
    ({"a": rule("tmp/", 5, branch_days={"mian": 90})}, "a", "so its 90 days protect nothing and 5 apply"),
    ({"a": rule("", 400)}, "", "cover every path of every branch"),
]
WARNINGS = [
    (
        {"wide": rule("data/", 5, noncurrent_only=True), "gold": rule("data/gold", 50)},
        "gold",
        "removes what is not current after 5",
    ),
    ({"wide": rule("data/", 5), "gold": rule("data/gold", 5)}, "gold", "removes all that it removes, no later"),
    ({"a": rule("temp/", 5)}, "a", "no path begins with 'temp/'"),
    ({"a": rule("tmp/", 5, branch_days={"mian": 1})}, "a", "branch_days names 'mian', which matches no branch"),
    ({**TMP, "branches": [{"match": "x-*", "idle_days": 9}]}, "branches 1", "'x-*' matches no branch"),
    ({**TMP, "branches": [{"match": "main", "idle_days": 9}]}, "branches 1", "the default branch, which is never"),
]


def findings(answer):
    return [json.loads(line) for line in answer[1].splitlines()]


@pytest.mark.parametrize(("document", "where", "fact"), ERRORS, ids=lambda value: str(value)[:20])
def test_an_error_is_told_by_lint_and_refused_by_the_rest(cli, uri, policy, document, where, fact):
    file = policy(document)
    answer = cli("lifecycle", "lint", uri, file, "--json")
    assert (answer[0], answer[2]) == (1, "")
    (found,) = [one for one in findings(answer) if one["level"] == "error"]
    assert found["rule"] == where
    assert fact in found["fact"]
    assert found["fix"]
    for words in (["set", uri, file], ["plan", uri, "--policy", file], ["run", uri, "--policy", file]):
        refused(cli("lifecycle", *words, "--confirm"), fact, code=2)
    assert cli("lifecycle", "get", uri)[0] == 1


@pytest.mark.parametrize(("document", "where", "fact"), CONFIRMS, ids=lambda value: str(value)[:20])
def test_what_should_be_said_twice_needs_a_yes(cli, repo, uri, policy, document, where, fact):
    file = policy(document)
    answer = cli("lifecycle", "lint", uri, file, "--json")
    assert answer[0] == 0
    (found,) = [one for one in findings(answer) if one["level"] == "confirm"]
    assert found["rule"] == where
    assert fact in found["fact"]
    for words in (["set", uri, file], ["run", uri, "--policy", file]):
        refused(cli("lifecycle", *words), "if it is meant so, pass --confirm")
    assert cli("lifecycle", "get", uri)[0] == 1
    code, _, err = cli("lifecycle", "plan", uri, "--policy", file)  # which removes nothing
    assert code == 0
    assert fact in err
    code, out, err = cli("lifecycle", "set", uri, file, "--confirm")
    assert code == 0
    assert out.startswith("Set 1 rule")
    assert re.fullmatch(r"warning: [^\n]*\n", err)
    assert len(paths(repo)) == 7


@pytest.mark.parametrize(("document", "where", "fact"), WARNINGS, ids=lambda value: str(value)[:20])
def test_a_warning_is_told_and_nothing_more(cli, uri, policy, document, where, fact):
    file = policy(document)
    answer = cli("lifecycle", "lint", uri, file, "--json")
    assert answer[0] == 0
    assert {one["level"] for one in findings(answer)} == {"warning"}
    assert [one for one in findings(answer) if one["rule"] == where and fact in one["fact"]]
    assert told(cli("lifecycle", "set", uri, file, "--json"))["findings"] == findings(answer)
    code, _, err = cli("lifecycle", "set", uri, file)
    assert code == 0
    assert fact in err


def test_lint_prints_lines_and_says_nothing_of_a_sound_policy(cli, uri, policy):
    assert cli("lifecycle", "lint", uri, policy(TMP)) == (0, "", "")
    code, out, err = cli("lifecycle", "lint", uri, policy(ERRORS[0][0] | {"keep": [{"prefix": "glod/"}]}))
    assert (code, err) == (1, "")
    assert [line.split("\t")[:2] for line in out.splitlines()] == [["error", "gold"], ["error", "keep-1"]]
    refused(cli("lifecycle", "set", uri, policy(ERRORS[0][0] | {"keep": [{"prefix": "glod/"}]})), "(and 1 more", code=2)


def test_a_path_that_only_history_has_is_a_path(cli, repo, uri, policy):
    """A rule counts for old commits, so a keep rule for what was deleted since keeps something."""
    file = policy({"d": rule("data/", 5), "keep": [{"prefix": "data/gold"}, {"glob": "*.md"}]})
    repo.delete_branch("dev")
    for path in ("data/gold", "notes.md"):
        repo.remove("main", path)
    repo.commit("main", "deleted")
    assert cli("lifecycle", "lint", uri, file) == (0, "", "")


def test_what_is_only_staged_is_a_path_too(cli, repo, uri, policy):
    repo.put("dev", "new/x.bin", b"x")
    file = policy({"d": rule("new/", 5), "keep": [{"glob": "new/*.bin"}]})
    assert cli("lifecycle", "lint", uri, file) == (0, "", "")


# ---- plan and run


def test_a_plan_says_what_goes_by_which_rule_what_stays_and_how_to_go_on(cli, repo, uri, policy):
    cli("lifecycle", "set", uri, policy({"all": rule("", 10), "keep": [{"prefix": "data/"}]}), "--confirm")
    repo.put("dev", "tmp/2", b"again")
    code, out, err = cli("lifecycle", "plan", uri)
    assert (code, err) == (0, "")
    assert re.search(r"all +expired +3", out)
    assert re.search(r"keep rule +4", out)
    assert "A sweep would be refused as it is:" in out
    run_id = re.search(r"desilt sweep (\S+) (\S+) --confirm --max-share 43%\n", out)
    assert run_id[1] == uri
    assert len(paths(repo)) == 7
    refused(cli("sweep", uri, run_id[2]), "--confirm")
    refused(cli("sweep", uri, run_id[2], "--confirm"), "--max-share")
    assert cli("sweep", uri, run_id[2], *SURE)[0] == 0
    assert paths(repo) == {"data/a", "data/b", "data/c", "data/gold"}


def test_the_first_run_of_a_policy_and_of_a_changed_one_needs_a_yes(cli, repo, uri, policy):
    cli("lifecycle", "set", uri, policy(TMP))
    refused(cli("lifecycle", "run", uri), "--confirm")
    assert "tmp/1" in paths(repo)
    code, out, _ = cli("lifecycle", "run", uri, "--confirm")
    assert code == 0
    assert "Done: 2 objects" in out
    repo.put("main", "tmp/3", b"x")
    repo.commit("main", "more")
    repo.set_clock(START + timedelta(days=40))
    assert told(cli("lifecycle", "run", uri, "--json"))["swept"]["removed"] == 1  # the same one may go on
    cli("lifecycle", "set", uri, policy({"md": rule("notes", 10)}))
    refused(cli("lifecycle", "run", uri), "--confirm")
    assert told(cli("lifecycle", "run", uri, *SURE, "--json"))["swept"]["removed"] == 1


def test_a_plan_for_what_was_set_before_is_refused(cli, repo, uri, policy):
    cli("lifecycle", "set", uri, policy(TMP))
    planned = told(cli("lifecycle", "plan", uri, "--json"))["run"]
    cli("lifecycle", "set", uri, policy({"tmp": rule("tmp/", 11)}))
    refused(cli("sweep", uri, planned, *SURE), "plan again")
    assert "tmp/1" in paths(repo)
    cli("lifecycle", "set", uri, policy({**TMP, "description": "the same after all"}))
    assert told(cli("sweep", uri, planned, *SURE, "--json"))["swept"]["removed"] == 2


def test_a_policy_of_its_own_leaves_what_is_set_alone(cli, repo, uri, policy):
    cli("lifecycle", "set", uri, policy(TMP))
    own = policy({"md": rule("notes", 10)}, "own.json")
    planned = told(cli("lifecycle", "plan", uri, "--policy", own, "--json"))
    assert planned["remove"] == {"md": {"expired": {"objects": 1, "bytes": 8}}}
    assert told(cli("sweep", uri, planned["run"], "--confirm", "--json"))["swept"]["removed"] == 1
    assert paths(repo) == {"data/a", "data/b", "data/c", "data/gold", "tmp/1", "tmp/2"}
    assert list(told(cli("lifecycle", "get", uri, "--json"))["policy"]["rules"]) == ["tmp"]
    assert told(cli("lifecycle", "run", uri, *SURE, "--json"))["swept"]["removed"] == 2


def test_json_of_a_run_has_what_the_page_has(cli, repo, uri, policy):
    cli("lifecycle", "set", uri, policy(TMP))
    report = told(cli("lifecycle", "run", uri, "--confirm", "--json"))
    assert (report["job"], report["repository"], report["by"]) == ("lifecycle", "demo", "rule")
    assert report["remove"] == {"tmp": {"expired": {"objects": 2, "bytes": 10}}}
    assert report["swept"]["removed"] == 2
    assert {"commits", "commits looked into", "deferred", "generation"} <= report["inputs"].keys()
    folder = f"{repo.prefix}_desilt/runs/lifecycle/{report['run']}/"
    assert json.loads(repo.store.get(folder + "report.json")) == report
    (row,) = map(json.loads, cli("runs", uri, "--job", "lifecycle", "--json")[1].splitlines())
    assert (row["run"], row["state"]) == (report["run"], "swept")


def test_a_run_looks_back_and_a_plan_on_a_manual_clock_ahead(cli, uri, policy):
    file = policy({"tmp": rule("tmp/", 30)})

    def going(now):
        return told(cli("lifecycle", "plan", uri, "--policy", file, "--now", now, "--json"))["removed"]["objects"]

    assert going("2026-01-21T00:00:00Z") == 0
    assert going("2026-01-31T00:00:00Z") == 0  # before means strictly earlier
    assert going("2026-01-31T00:00:01Z") == 2


def test_a_run_begins_where_the_last_one_ended_and_a_full_one_at_the_beginning(cli, repo, uri, policy):
    cli("lifecycle", "set", uri, policy(TMP))
    cli("lifecycle", "run", uri, "--confirm")
    repo.set_clock(START + timedelta(days=60))
    looked_into = [
        told(cli("lifecycle", "plan", uri, *full, "--json"))["inputs"]["commits looked into"]
        for full in ([], ["--full"])
    ]
    assert looked_into == [0, 2]


def test_branches_that_nobody_moves_go_with_a_run(cli, repo, uri, policy):
    cli("lifecycle", "set", uri, policy({"branches": [{"match": "*", "idle_days": 9}]}))
    code, out, _ = cli("lifecycle", "plan", uri)
    assert code == 0
    assert re.search(r"dev +'\*': no write for more than 9 days", out)
    refused(cli("lifecycle", "run", uri), "--confirm")
    assert told(cli("lifecycle", "run", uri, "--confirm", "--json"))["refs"] == {"dev": "deleted"}
    assert [branch.name for branch in repo.branches()] == ["main"]


def test_what_went_to_the_trash_comes_back(cli, repo, uri, policy):
    cli("lifecycle", "set", uri, policy(TMP))
    code, out, _ = cli("lifecycle", "run", uri, "--to", "trash", "--confirm")
    assert code == 0
    assert "2 objects of 10 B moved to the trash" in out
    assert "tmp/1" not in paths(repo)
    assert cli("restore", uri, "last")[0] == 0
    assert "tmp/1" in paths(repo)
    assert cli("lake", "get", uri, "main", "tmp/1")[:2] == (0, "tmp/1")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--now", "yesterday"], "'yesterday' is not a time"),
        (["--to", "heaven"], "heaven"),
        (["--max-share", "3"], "write 30%"),
        (["--branch", "main"], "--branch"),
        (["--inventory", "x"], "--inventory"),
        (["--policy", "nosuch"], "nosuch"),
    ],
    ids=str,
)
def test_bad_values_are_2(cli, uri, policy, options, says):
    cli("lifecycle", "set", uri, policy(TMP))
    for command in ("plan", "run"):
        refused(cli("lifecycle", command, uri, *options), says, code=2)
