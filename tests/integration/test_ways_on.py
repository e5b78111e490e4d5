"""A plan says all that guards have against it, everywhere, and offers a command that is let pass."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from desilt.cli.ways_on import without_password

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def lake(repo):
    """More than a third of it is garbage."""
    for number in range(5):
        repo.put("main", f"lost-{number}", b"lost")
        repo.reset("main", path=f"lost-{number}")
        repo.put("main", f"kept-{number}", b"kept")
    repo.commit("main", "kept")
    repo.set_clock(repo.clock() + timedelta(days=3))
    return repo


def offered(said):
    """The words of the command that is offered, in its own line or at the end of an error."""
    return re.search(r"right: desilt (.*)$", said, re.MULTILINE)[1].split()


@pytest.mark.usefixtures("lake")
def test_a_plan_offers_what_is_let_pass(cli, uri):
    code, out, err = cli("gc", "plan", uri)
    assert (code, err) == (0, "")
    assert (
        "this policy of 'gc' was never carried out here before, or not as far\n  5 of 10 objects would go: 50%" in out
    )
    assert cli(*offered(out))[0] == 0


@pytest.mark.usefixtures("lake")
def test_so_does_a_run_that_is_refused(cli, uri):
    code, out, err = cli("gc", "run", uri, "--max-objects", "3")
    assert (code, out) == (10, "")
    assert err.count("\n") == 1
    assert "or not as far; 5 objects would go, the limit is 3; 5 of 10 objects would go: 50%, the limit is 30%; " in err
    assert cli(*offered(err))[0] == 0


@pytest.mark.usefixtures("lake")
def test_so_does_a_sweep_that_is_refused(cli, uri):
    run = json.loads(cli("gc", "plan", uri, "--json")[1])["run"]
    assert cli(*offered(cli("sweep", uri, run)[2]))[0] == 0


@pytest.mark.usefixtures("lake")
def test_programs_are_told_the_same(cli, uri):
    report = json.loads(cli("gc", "plan", uri, "--json")[1])
    assert [one["code"] for one in report["objections"]] == ["first-run", "too-much"]
    assert report["passes"] == "--confirm --max-share 50%"
    swept = json.loads(cli("sweep", uri, report["run"], *report["passes"].split(), "--json")[1])
    assert swept["objections"] == []


@pytest.mark.usefixtures("lake")
def test_a_plan_that_is_let_pass_as_it_is_offers_a_plain_command(cli, uri, lake):
    assert cli("gc", "run", uri, "--confirm", "--max-share", "50%")[0] == 0
    lake.set_clock(lake.clock() + timedelta(days=40))
    lake.put("main", "lost again", b"x")
    lake.reset("main")
    lake.set_clock(lake.clock() + timedelta(days=3))
    out = cli("gc", "plan", uri)[1]
    assert "refused" not in out
    assert re.search(rf"^Carry it out with: desilt sweep {re.escape(uri)} \S+$", out, re.MULTILINE)


@pytest.mark.usefixtures("lake")
def test_where_no_word_helps_none_is_offered(cli, uri, lake, tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_text('{"a": {"prefix": "kept", "days": 1, "branch_days": {"main": 1}}}')
    lake.create_branch("old", "main")
    assert cli("lifecycle", "set", uri, policy, "--confirm")[0] == 0
    run = json.loads(cli("lifecycle", "plan", uri, "--json")[1])["run"]
    policy.write_text('{"a": {"prefix": "kept", "days": 2, "branch_days": {"main": 1}}}')
    assert cli("lifecycle", "set", uri, policy, "--confirm")[0] == 0
    code, _, err = cli("sweep", uri, run)
    assert code == 10
    assert "right: desilt" not in err
    assert "plan again" in err


@pytest.mark.usefixtures("lake")
def test_a_database_that_was_named_is_named_in_the_offer(cli, uri, place):
    out = cli("gc", "plan", uri, "--db", f"sqlite://{place}/lake/desilt.db")[1]
    assert out.splitlines()[-2].endswith(f"--db sqlite://{place}/lake/desilt.db")
    assert cli(*offered(out))[0] == 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://ana:secret@db.example/lake", "postgresql://ana@db.example/lake"),
        ("postgresql://ana:s:e/c@r@db.example:5432/lake", "postgresql://ana@db.example:5432/lake"),
        ("postgresql://db.example/lake?user=ana&password=a&x=1", "postgresql://db.example/lake?user=ana&x=1"),
        ("postgresql://db.example/lake?user=ana&pass%77ord=a", "postgresql://db.example/lake?user=ana"),
        ("postgresql://ana@db.example/lake", "postgresql://ana@db.example/lake"),
        ("sqlite:///home/a:b@c.db", "sqlite:///home/a:b@c.db"),
    ],
)
def test_a_password_is_not_repeated(url, said):
    assert without_password(url) == said


@pytest.mark.usefixtures("lake")
def test_a_profile_that_was_chosen_is_chosen_in_the_offer(cli, uri, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desilt.toml").write_text(f'[profiles.prod]\nrepo = "{uri}"\ndb = "sqlite://{place}/lake/desilt.db"\n')
    out = cli("--profile", "prod", "gc", "plan")[1]
    assert "desilt --profile prod sweep" in out
    assert "--db" not in out
    assert cli(*offered(out))[0] == 0


@pytest.mark.usefixtures("lake")
def test_what_is_refused_is_told_to_programs_with_the_command_that_is_not(cli, uri):
    code, out, err = cli("gc", "run", uri, "--json")
    told = json.loads(out)
    assert (code, len(out.splitlines()), len(err.splitlines())) == (10, 1, 1)
    assert [one["code"] for one in told["objections"]][:1] == ["first-run"]
    assert json.loads(cli("gc", "plan", uri, "--json")[1])["command"].startswith(f"desilt sweep {uri}")
    assert cli(*told["command"].split()[1:])[0] == 0
