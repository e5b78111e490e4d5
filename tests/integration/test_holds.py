"""Holds: made, listed and lifted from the command line, and heeded by every job."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.testing import oracle
from words import days

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = ("--confirm", "--max-share", "100%", "--allow-empty")
WHY = ("--reason", "audit of 2025")


@pytest.fixture
def repo(repo):
    for number in range(10):
        repo.put("main", f"kept/{number}", b"x")
    for path in ("tmp/a", "tmp/b", "tmp/cold/c"):
        repo.put("main", path, path.encode())
    repo.commit("main", "first")
    repo.remove("main", "tmp/b")
    repo.put("main", "tmp/d", b"d")
    repo.commit("main", "second")
    repo.set_clock(START + timedelta(days=20))
    return repo


@pytest.fixture
def old(cli, uri, tmp_path):
    """What goes below tmp/ after ten days: run it with these options; its report."""
    (tmp_path / "policy.json").write_text('{"tmp": {"prefix": "tmp/", "days": 10}}')
    assert cli("lifecycle", "set", uri, tmp_path / "policy.json")[0] == 0

    def run(*options):
        return told(cli("lifecycle", "run", uri, *SURE, "--json", *options))

    return run


def told(answer):
    """The JSON of a command that went well."""
    code, out, err = answer
    assert (code, err) == (0, "")
    return json.loads(out)


def refused(answer, says, code):
    """One line on stderr, nothing on stdout."""
    assert answer[0] == code, answer
    assert answer[1] == ""
    assert re.fullmatch(r"error: [^\n]*\n", answer[2])
    assert says in answer[2]


def addresses(repo):
    """By path, what any commit of main has below tmp/."""
    tips = [f"main~{number}" for number in range(2)]
    return {entry.path: entry.address for tip in tips for entry in repo.list(tip, "tmp/")}


def left(repo, known):
    stored = oracle.stored(repo)
    return {path.removeprefix("tmp/") for path, address in known.items() if address in stored}


# ---- the three kinds


@pytest.mark.parametrize(
    ("named", "keeps"),
    [
        (["--prefix", "tmp/co"], {"cold/c"}),
        (["--prefix", ""], {"a", "b", "cold/c", "d"}),
        (["--ref", "main~1"], {"a", "b", "cold/c"}),
        (["--ref", "main"], {"a", "cold/c", "d"}),
    ],
    ids=str,
)
def test_what_a_hold_names_stays_until_it_is_lifted(cli, repo, uri, old, named, keeps):
    known = addresses(repo)
    made = told(cli("hold", "add", uri, *named, *WHY, "--json"))
    report = old()
    assert left(repo, known) == keeps
    assert report["keep"]["held"]["objects"] == len(keeps)
    assert report["holds"][made["id"]]["objects"] == len(keeps)
    assert cli("hold", "rm", uri, made["id"])[:2] == (0, f"Hold {made['id']} is lifted\n")
    old()
    assert left(repo, known) == set()


def test_an_object_is_held_by_its_address_or_its_uri(cli, repo, uri, old):
    known = addresses(repo)
    first = told(cli("hold", "add", uri, "--address", known["tmp/a"], *WHY, "--json"))
    second = told(cli("hold", "add", uri, "--address", repo.core.uri + known["tmp/b"], *WHY, "--json"))
    assert (first["value"], second["value"]) == (known["tmp/a"], known["tmp/b"])
    assert old()["keep"]["held"]["objects"] == 2
    assert left(repo, known) == {"a", "b"}


def test_uncommitted_garbage_is_held_by_its_address(cli, repo, uri):
    lost = [repo.put("main", f"lost/{number}", b"x").address for number in range(2)]
    repo.reset("main")
    days(repo, 5)
    held = told(cli("hold", "add", uri, "--address", lost[0], *WHY, "--json"))["id"]
    report = told(cli("gc", "run", uri, *SURE, "--json"))
    assert (report["swept"]["removed"], report["keep"]["held"]["objects"]) == (1, 1)
    assert lost[0] in oracle.stored(repo)
    cli("hold", "rm", uri, held)
    assert told(cli("gc", "run", uri, *SURE, "--json"))["swept"]["removed"] == 1
    assert lost[0] not in oracle.stored(repo)


@pytest.mark.parametrize(
    "named", [["--prefix", "tmp/a"], ["--ref", "main"], ["--address", None]], ids=lambda one: one[0]
)
def test_a_hold_that_comes_after_the_plan_is_heeded_by_the_sweep(cli, repo, uri, old, named):  # noqa: ARG001
    known = addresses(repo)
    planned = told(cli("lifecycle", "plan", uri, "--json"))
    assert planned["removed"]["objects"] == 4
    told(cli("hold", "add", uri, named[0], named[1] or known["tmp/a"], *WHY, "--json"))
    swept = told(cli("sweep", uri, planned["run"], *SURE, "--json"))["swept"]
    assert "a" in left(repo, known)
    assert "b" not in left(repo, known)
    assert swept["held_again"] == len(left(repo, known))


def test_a_ref_is_what_it_pointed_to_then(cli, repo, uri, old):
    known = addresses(repo)
    made = told(cli("hold", "add", uri, "--ref", "main", *WHY, "--json"))
    assert made["value"] == repo.resolve("main").commit.id
    for path in ("tmp/a", "tmp/d"):
        repo.remove("main", path)
    late = repo.put("main", "tmp/late", b"late").address
    repo.commit("main", "third")
    days(repo, 20)
    old()
    assert left(repo, known) == {"a", "cold/c", "d"}
    assert late not in oracle.stored(repo)


# ---- until


def test_a_hold_whose_day_has_passed_does_not_count(cli, repo, uri, old):
    known = addresses(repo)
    made = told(cli("hold", "add", uri, "--prefix", "tmp/a", *WHY, "--until", "30d", "--json"))
    assert (made["state"], made["until"]) == ("active", "2026-02-20T00:00:00.000000Z")
    days(repo, 29)
    old()
    assert left(repo, known) == {"a"}
    days(repo, 1)
    assert told(cli("hold", "ls", uri, "--json"))["state"] == "expired"
    old()
    assert left(repo, known) == set()


def test_an_end_is_a_time_or_a_span(cli, uri):
    ends = [
        told(cli("hold", "add", uri, "--prefix", "tmp/", *WHY, "--until", until, "--json"))["until"]
        for until in ("2026-03-01T01:00:00+01:00", "12h", "2w")
    ]
    assert ends == [f"2026-{day}:00:00.000000Z" for day in ("03-01T00", "01-21T12", "02-04T00")]


@pytest.mark.parametrize(
    ("until", "says"),
    [
        ("2026-01-21T00:00:00Z", "has passed, so this would hold nothing"),
        ("0s", "has passed"),
        ("soon", "'soon' is not a time; write 2026-01-31, or 2026-01-31T12:00:00Z, or 30d"),
        ("2026-03-01T00:00:00", "no time zone"),
        ("2200-01-01T00:00:00Z", "cannot be kept"),
        ("999999w", "is longer than a hundred years"),
    ],
)
def test_an_end_that_is_none_is_2(cli, uri, until, says):
    refused(cli("hold", "add", uri, "--prefix", "tmp/", *WHY, "--until", until), says, code=2)
    assert cli("hold", "ls", uri) == (0, "", "")


# ---- words


def test_holds_are_listed_the_oldest_first_with_all_that_is_known(cli, repo, uri):
    assert cli("hold", "ls", uri, "--json") == (0, "", "")
    code, out, err = cli("hold", "add", uri, "--ref", "main", *WHY)
    assert (code, err) == (0, "")
    head = repo.resolve("main").commit.id
    first = re.fullmatch(rf"Hold ([0-9a-f]{{8}}) keeps ref '{head}' for good\n", out)[1]
    days(repo, 1)
    out = cli("hold", "add", uri, "--prefix", "tmp/", "--reason", "ask\tana", "--until", "1d")[1]
    second = re.fullmatch(r"Hold ([0-9a-f]{8}) keeps prefix 'tmp/' until 2026-01-23 00:00:00 UTC\n", out)[1]
    rows = [json.loads(line) for line in cli("hold", "ls", uri, "--json")[1].splitlines()]
    assert rows == [
        {
            "id": first,
            "kind": "ref",
            "value": head,
            "state": "active",
            "until": None,
            "made": "2026-01-21T00:00:00.000000Z",
            "reason": "audit of 2025",
        },
        {
            "id": second,
            "kind": "prefix",
            "value": "tmp/",
            "state": "active",
            "until": "2026-01-23T00:00:00.000000Z",
            "made": "2026-01-22T00:00:00.000000Z",
            "reason": "ask\tana",
        },
    ]
    lines = [line.split("\t") for line in cli("hold", "ls", uri)[1].splitlines()]
    assert [line[0] for line in lines] == [first, second]
    assert lines[1][-1] == "ask\\tana"
    assert told(cli("hold", "rm", uri, first, "--json")) == {"id": first, "removed": True}
    assert told(cli("hold", "ls", uri, "--json"))["id"] == second


def test_a_prefix_that_no_path_has_is_held_and_told(cli, uri):
    code, out, err = cli("hold", "add", uri, "--prefix", "tpm/", *WHY)
    assert code == 0
    assert "keeps prefix 'tpm/'" in out
    assert err == "warning: no path begins with 'tpm/' today; look for a misspelling\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (WHY, "one of --prefix, --ref and --address"),
        (["--prefix", "a", "--ref", "main", *WHY], "one of --prefix, --ref and --address"),
        (["--prefix", "a"], "--reason"),
        (["--prefix", "a", "--reason", " "], "needs a reason"),
        (["--address", "tmp/a", *WHY], "is not the address of an object here"),
        (["--address", "_lakefs/x", *WHY], "is not the address of an object here"),
        (["--address", "s3://elsewhere/x", *WHY], "is not the address of an object here"),
    ],
    ids=str,
)
def test_a_hold_that_says_too_little_or_too_much_is_2(cli, uri, words, says):
    refused(cli("hold", "add", uri, *words), says, code=2)
    assert cli("hold", "ls", uri) == (0, "", "")


def test_what_is_not_there_or_gone_cannot_be_held(cli, repo, uri, old):
    known = addresses(repo)
    nowhere = known["tmp/a"][:-20] + "0" * 20
    refused(cli("hold", "add", uri, "--address", nowhere, *WHY), f"there is no object '{nowhere}'", code=1)
    refused(cli("hold", "add", uri, "--ref", "nosuch", *WHY), "there is no ref 'nosuch'", code=1)
    refused(cli("hold", "rm", uri, "nosuch"), "there is no hold 'nosuch'; see `desilt hold ls`", code=1)
    old()
    refused(cli("hold", "add", uri, "--address", known["tmp/a"], *WHY), "is gone: run", code=1)
    assert cli("hold", "ls", uri) == (0, "", "")


def test_holds_and_policies_are_kept_in_postgresql_alike(cli, tmp_path, fresh_postgres_url):
    place, db = f"{tmp_path}/objects#demo", ("--db", fresh_postgres_url())
    lake = Lake.create(locate(place, db=db[1]))
    made = lake.create_repository("demo", clock_at=START)
    address = made.put("main", "tmp/a", b"a").address
    made.commit("main", "first")
    lake.close()
    (tmp_path / "policy.json").write_text('{"tmp": {"prefix": "tmp/", "days": 10}}')
    assert told(cli("lifecycle", "set", place, tmp_path / "policy.json", *db, "--json"))["findings"] == []
    assert told(cli("lifecycle", "get", place, *db, "--json"))["policy"]["rules"]["tmp"]["days"] == 10
    for named in (["--prefix", "tmp/"], ["--ref", "main"], ["--address", address]):
        told(cli("hold", "add", place, *named, *WHY, *db, "--until", "30d", "--json"))
    rows = [json.loads(line) for line in cli("hold", "ls", place, *db, "--json")[1].splitlines()]
    assert {row["kind"] for row in rows} == {"prefix", "ref", "address"}
    report = told(cli("lifecycle", "plan", place, *db, "--now", "2026-01-21T00:00:00Z", "--json"))
    assert (report["removed"]["objects"], report["keep"]["held"]["objects"]) == (0, 1)
    assert cli("hold", "rm", place, rows[0]["id"], *db)[0] == 0
