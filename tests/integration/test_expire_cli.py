"""`desilt expire`, `abandon` and `collect` as people and programs meet them: words, exit codes, JSON, pages."""

import json
import re
from pathlib import Path

import pytest

from seed_003 import sample

DATE = ("--older-than", "2026-01-09")
NOW = ("--unreached-for", "0d")
SURE = ("--confirm", "--max-share", "100%")


@pytest.fixture
def lake(tmp_path):
    opened, repo, made = sample(tmp_path / "lake")
    yield repo, made
    opened.close()


@pytest.fixture
def uri(tmp_path, lake):
    assert lake
    return f"{tmp_path}/lake#sample"


def test_a_plan_is_drawn_and_says_how_to_go_on(cli, uri):
    code, out, err = cli("expire", "plan", uri, *DATE)
    assert (code, err) == (0, "")
    assert "4 commits would be edited, 2 commits would be abandoned, 0 refs would be deleted. No object" in out
    assert "Before: 15 commits" in out
    assert "After: 13 commits" in out
    assert re.search(r"^│ │ ○  \w{12}  7  · 2026-01-08", out, re.MULTILINE)
    assert "● kept 7   ◆ pointed at 2   ✎ edited 4   ○ abandoned 2" in out
    assert "Old refs that stay" in out
    assert "A sweep would be refused as it is:\n  this policy of 'expire' was never carried out here before" in out
    run_id = re.search(r"desilt sweep \S+ (\S+)", out)[1]
    assert cli("sweep", uri, run_id, "--confirm")[0] == 0
    assert [line.split("\t")[2] for line in cli("lake", "log", uri, "main")[1].splitlines()] == [
        "14", "13", "12", "Repository created"
    ]  # fmt: skip


def test_the_first_run_needs_a_word(cli, uri):
    code, out, err = cli("expire", "run", uri, *DATE)
    assert (code, out) == (10, "")
    assert "look at the plan, and if all of it is right: desilt sweep " in err
    code, out, _ = cli("expire", "run", uri, *DATE, "--confirm")
    assert code == 0
    assert "4 commits edited, 2 commits abandoned" in out
    assert "until `desilt collect` takes it" in out
    assert "0 commits edited" in cli("expire", "run", uri, *DATE)[1]


def test_json_has_every_edit_every_abandoned_commit_and_every_ref(cli, uri, lake):
    _, made = lake
    code, out, _ = cli("expire", "plan", uri, *DATE, "--delete-expired-tags", "--json")
    report = json.loads(out)
    dots = {dot["message"]: dot for dot in report["change"]["dots"]}
    assert code == 0
    assert (dots["12"]["fate"], dots["12"]["before"], dots["12"]["after"]) == ("edited", [made["5"]], [made["0"]])
    assert (dots["6"]["fate"], dots["6"]["by"]) == ("abandoned", ["develop", "qa", "test", "tag tag1"][:3])
    assert set(report["change"]["deleted"]) == {"tag tag1", "tag tag2"}
    assert (report["history"]["edited"], report["history"]["tags deleted"]) == (4, 2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "Missing option '--older-than'"),
        (("--older-than", "soon"), "'soon' is neither a date nor a length of time; write 2026-01-31, or 30d"),
        (("--older-than", "30x"), "'30x' is not a length of time; write 90m, 12h or 7d"),
        (("--older-than", "2026-13-01"), "'2026-13-01' is not a time: there is no such day; write 2026-01-31"),
        (("--older-than", "2026-01-01T25"), "'2026-01-01T25' is not a time"),
        (("--older-than", "2027-01-01"), "is not over yet; give a time that has passed"),
        (
            (*DATE, "--keep", "dayly=7"),
            "is not so many of last, hourly, daily, weekly, monthly, yearly; write",
        ),
        ((*DATE, "--keep", "daily=7,daily=8"), "'daily=7,daily=8' has daily twice"),
        ((*DATE, "--confirm"), "No such option '--confirm'"),  # a plan needs no word
        ((*DATE, "--keep", "daily=0"), "the keep rules keep nothing"),
        ((*DATE, "--keep-last", "0"), "--keep-last"),
    ],
)
def test_bad_requests_are_one_line(cli, uri, arguments, says):
    code, out, err = cli("expire", "plan", uri, *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_keep_rules(cli, uri):
    out = cli("expire", "plan", uri, *DATE, "--keep-last", "4", "--keep", "daily=2, monthly=1", "--json")[1]
    assert json.loads(out)["history"]["kept by rules"] == 4


def test_abandon(cli, uri, lake):
    repo, made = lake
    code, out, _ = cli("abandon", uri, "main", f"{made['13'][:10]}..{made['12']}")
    assert code == 0
    assert "1 commit edited, 2 commits abandoned" in out
    assert [commit.message for commit in repo.log("main")][:2] == ["14", "5"]
    for commits, says in (
        (made["5"], "is not FIRST..LAST"),
        ("main~1...main~3", "is not FIRST..LAST; write two commits of 'main' with two dots between them"),
        ("main~1..main~2..main~3", "is not FIRST..LAST"),
        (f"{made['5']}..{made['4']}", "is what tag 'tag2' points to"),
        ("main..main~1", "is the tip of branch 'main'"),
        ("main~1..nobody", "there is no ref 'nobody'"),
    ):
        code, out, err = cli("abandon", uri, "main", commits)
        assert (code in (1, 2), out) == (True, "")
        assert says in err


def test_collect_from_plan_to_gone(cli, uri, lake):
    _, made = lake
    cli("expire", "run", uri, *DATE, "--confirm")
    code, out, _ = cli("collect", "plan", uri)
    assert code == 0
    assert "Nothing is to go." in out
    assert "2 commits stay: kept for being young, or released lately" in out
    code, out, _ = cli("collect", "plan", uri, *NOW)
    assert code == 0
    assert "ranges and metaranges" in out
    assert re.search(r"2 commits .*would go", out)
    assert "--to trash" not in out
    assert "this policy of 'collect' was never carried out here before" in out
    code, out, _ = cli("collect", "run", uri, *NOW, *SURE)
    assert code == 0
    assert "2 commits are gone" in out
    code, _, err = cli("lake", "show", uri, made["7"])
    assert code == 1
    assert re.match(rf"error: commit {made['7']} is gone: no ref reached it any more, and run \S+ collected it", err)
    code, out, _ = cli("collect", "run", uri)
    assert code == 0
    assert "Nothing is to go." in out
    report = json.loads(cli("runs", "show", uri, "last", "--json")[1])
    assert report["history"] == {"commits collected": 0}


def test_collect_refuses_what_it_cannot_mean(cli, uri):
    code, _, err = cli("collect", "plan", uri, "--older-than", "5m")
    assert (code, "--older-than is less than 1h" in err) == (2, True)
    code, _, err = cli("collect", "run", uri, "--to", "trash")
    assert (code, "'collect' has no use for the trash" in err) == (2, True)


def test_the_page_of_an_expiration_has_the_picture(cli, uri):
    out = cli("expire", "run", uri, *DATE, "--confirm")[1]
    page = Path(re.search(r"file://(\S+report\.html)", out)[1]).read_text()
    assert page.count("<svg") >= 2
    assert "4 commits edited" in page
    assert "tag1" in page


def test_runs_show_tells_of_an_expiration_again(cli, uri):
    cli("expire", "run", uri, *DATE, "--confirm")
    code, out, _ = cli("runs", "show", uri, "last")
    assert code == 0
    assert "4 commits edited, 2 commits abandoned" in out
    report = json.loads(cli("runs", "show", uri, "last", "--json")[1])
    assert [dot["fate"] for dot in report["change"]["dots"]].count("abandoned") == 2


def test_runs_are_listed_with_what_they_do_to_history(cli, uri):
    cli("expire", "plan", uri, *DATE, "--delete-expired-tags")
    cli("expire", "run", uri, *DATE, "--confirm")
    cli("expire", "run", uri, *DATE)
    lines = [line.split("\t") for line in cli("runs", "list", uri)[1].splitlines()]
    told = {(line[1], *line[3:]) for line in lines}
    assert told == {
        ("expire", "planned", "4 edits, 2 refs", "", ""),
        ("expire", "swept", "4 edits", "", ""),
        ("expire", "swept", "0", "", ""),
    }
    rows = [json.loads(line) for line in cli("runs", "list", uri, "--json")[1].splitlines()]
    assert {(row["edits"], row["refs"], row["planned"], row["removed"]) for row in rows} == {
        (4, 2, 0, 0), (4, 0, 0, 0), (0, 0, 0, 0)
    }  # fmt: skip


def test_a_collection_is_listed_with_its_commits_and_cannot_be_brought_back(cli, uri):
    cli("expire", "run", uri, *DATE, "--confirm")
    code, _, err = cli("restore", uri, "last")
    assert code == 1
    assert "removed no object: it edited history; to have a commit back, make a tag or a branch" in err
    run_id = json.loads(cli("collect", "run", uri, *NOW, *SURE, "--json")[1])["run"]
    (row,) = [line.split("\t") for line in cli("runs", uri, "--job", "collect")[1].splitlines()]
    assert re.fullmatch(r"\d+, 2 commits", row[4])
    code, _, err = cli("restore", uri, run_id)
    assert (code, f"run {run_id} is a collection: what it removed cannot be brought back" in err) == (1, True)


def test_help_says_what_rules_keep_and_which_branches_stay(cli):
    words = " ".join(cli("expire", "plan", "--help")[1].split())
    assert "newest, of each of the last N hours, days, weeks, months, years that have any" in words
    assert "never the default branch, nor one with staged entries or open uploads" in words
    assert "--confirm" not in words
    assert "--confirm" in cli("expire", "run", "--help")[1]
