"""What need not be typed: desilt.toml, profiles, variables."""

import json
from datetime import UTC, datetime

import pytest

from words import committed, days, put

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory to work in, and a home, both empty."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for name in ("DESILT_REPO", "DESILT_REF", "DESILT_PROFILE", "DESILT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return work


@pytest.fixture
def full(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    committed(repo, "dev", b="2")
    put(repo, "main", "lost")
    repo.reset("main")
    days(repo, 5)
    return repo


def write(folder, text):
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "desilt.toml").write_text(text)


def test_a_repository_need_not_be_typed(cli, full, uri, here):
    assert cli("gc", "plan")[0] == 2
    write(here, f'repo = "{uri}"\nref = "dev"\n')
    assert json.loads(cli("gc", "plan", "--json")[1])["removed"]["objects"] == 1

    def listed(*words):
        return {json.loads(line)["path"] for line in cli("lake", "ls", *words, "--json")[1].splitlines()}

    assert listed() == listed(uri) == {"a", "b"}
    assert listed("main") == listed(uri, "main") == {"a"}
    assert cli("explain", "a")[0] == 0
    assert cli("runs", "show", "last")[0] == 0
    assert full


def test_what_is_typed_counts_before_a_variable_and_that_before_a_file(cli, full, uri, here, tmp_path, monkeypatch):
    write(tmp_path / "home" / "desilt", f'repo = "{uri}"\n[stats]\ndepth = 9\nfolders = 0\n')
    monkeypatch.setenv("DESILT_REPO", "./nowhere#at-all")
    assert "nowhere" in cli("stats")[2]
    assert cli("stats", uri)[0] == 0
    monkeypatch.delenv("DESILT_REPO")
    assert json.loads(cli("stats", "--json")[1])["folders"] == {}
    write(here, "[stats]\nfolders = 5\n")  # nearer than the user's own
    assert json.loads(cli("stats", "--json")[1])["folders"] != {}
    monkeypatch.setenv("DESILT_STATS_FOLDERS", "0")
    assert json.loads(cli("stats", "--json")[1])["folders"] == {}
    assert json.loads(cli("stats", "--json", "--folders", "3")[1])["folders"] != {}
    assert full


def test_options_of_commands_are_said_for_one_or_for_all_of_a_job(cli, full, uri, here):
    write(here, f'repo = "{uri}"\n[gc]\nmax_share = "100%"\n[gc.run]\nto = "trash"\n')
    assert json.loads(cli("gc", "plan", "--json")[1])["action"] == "delete"
    report = json.loads(cli("gc", "run", "--confirm", "--json")[1])
    assert (report["action"], report["swept"]["removed"]) == ("trash", 1)
    assert full


def test_profiles_are_chosen_by_name(cli, full, uri, here, monkeypatch):
    write(here, f'repo = "./nowhere#mine"\n[profiles.prod]\nrepo = "{uri}"\n[profiles.prod.stats]\nfolders = 0\n')
    assert cli("stats")[0] != 0
    assert json.loads(cli("--profile", "prod", "stats", "--json")[1])["folders"] == {}
    monkeypatch.setenv("DESILT_PROFILE", "prod")
    assert cli("stats")[0] == 0
    code, _, err = cli("--profile", "test", "stats")
    assert (code, "there is no profile 'test'; there are prod" in err) == (2, True)
    assert full


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("repo = 3", "repo is 3; write a text"),
        ("repo = ", "is not TOML"),
        ("[stats]\nfoldres = 3", "`desilt stats` has no option 'foldres'"),
        ("[stats]\nfolders = 'many'", "'many' is not a valid int"),
        ("profiles = 3", "profiles is no table of tables"),
        ("[profiles]\np = 5", "profiles is no table of tables"),
        ("[profiles.p]\nrepo = 5", "repo is 5; write a text"),
        ("stats = 5", "nothing of `desilt` has 'stats'"),
        ("[statts]\nfolders = 3", "`desilt` has no command 'statts'"),
        ("colour = 'red'", "nothing of `desilt` has 'colour'"),
    ],
)
def test_a_file_that_means_nothing_is_told_with_its_place(cli, uri, here, text, told):
    write(here, text)
    code, out, err = cli("stats", uri)
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1


def test_a_file_that_is_named_is_the_only_one(cli, full, uri, here, tmp_path, monkeypatch):
    write(here, "[stats]\nfolders = 0\n")
    other = tmp_path / "other.toml"
    other.write_text(f'repo = "{uri}"\n')
    monkeypatch.setenv("DESILT_CONFIG", str(other))
    assert json.loads(cli("stats", "--json")[1])["folders"] != {}
    monkeypatch.setenv("DESILT_CONFIG", str(tmp_path / "nothing.toml"))
    assert "there is no such file" in cli("stats")[2]
    assert full


def test_what_makes_a_repository_is_always_told_where(cli, uri, here, tmp_path):
    write(here, f'repo = "{uri}"\n')
    assert cli("lake", "init", f"{tmp_path}/another#one")[0] == 0
    assert cli("lake", "init")[0] == 2


def test_help_needs_no_file_to_be_right(cli, here):
    write(here, "nonsense")
    assert cli("--version")[0] == 0
    assert cli("gc", "plan", "--help")[0] == cli("--help")[0] == 0
    assert cli("gc", "plan", "x#y")[0] == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[gc]\nmax_shares = "1%"', "nothing of `desilt gc` has 'max_shares'"),
        ('[gc]\ntoo = "trash"', "nothing of `desilt gc` has 'too'"),
        ('[gc.rn]\nto = "trash"', "`desilt gc` has no command 'rn'"),
        ('[gc.run]\ntoo = "trash"', "`desilt gc run` has no option 'too'"),
        ("[gc]\nmax_share = 48", "48 is not a text; write it in quotes"),
        ("[gc]\nmax_share = true", "True is not a text"),
        ("[gc]\nmax_share = nan", "nan is not a text"),
    ],
)
@pytest.mark.usefixtures("full")
def test_a_limit_that_is_misspelled_is_not_one_that_is_missing(cli, uri, here, text, told):
    write(here, text)
    code, out, err = cli("gc", "run", uri, "--confirm")
    assert (code, out) == (2, "")
    assert told in err


def test_a_database_may_be_said_in_a_file(cli, uri, here):
    write(here, f'repo = "{uri}"\ndb = "sqlite:///nowhere/at.all"\n[profiles.right]\ndb = "{database(uri)}"\n')
    assert "/nowhere/at.all" in cli("stats")[2]
    assert cli("--profile", "right", "stats")[0] == 0
    assert cli("stats", "--db", database(uri))[0] == 0


def database(uri):
    return f"sqlite://{uri.partition('#')[0]}/desilt.db"


def test_a_profile_that_is_typed_counts_before_all_that_is_not(cli, full, uri, here, tmp_path, monkeypatch):
    write(tmp_path / "home" / "desilt", f'[profiles.test]\nrepo = "{uri}"\ndb = "{database(uri)}"\n')
    write(here, 'repo = "./nowhere#mine"\n')
    monkeypatch.setenv("DESILT_REPO", "./elsewhere#mine")
    monkeypatch.setenv("DESILT_DB", "sqlite:///elsewhere.db")
    assert cli("--profile", "test", "stats")[0] == 0
    monkeypatch.setenv("DESILT_PROFILE", "test")
    assert "elsewhere" in cli("stats")[2]
    assert full


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("GC_RUN_CONFIRM", "1", ("gc", "run")), ("UPKEEP_RUN_CONFIRM", "all", ("upkeep", "run", "--file", "up.json"))],
)
def test_a_variable_does_not_say_yes(cli, full, uri, here, monkeypatch, name, value, words):
    (here / "up.json").write_text('{"gc": {"max_share": "100%"}}')
    monkeypatch.setenv("DESILT_GC_RUN_MAX_SHARE", "100%")
    monkeypatch.setenv(f"DESILT_{name}", value)
    code, out, err = cli(*words, uri)
    assert (code, "never carried out" in out + err) == (10, True)
    assert full


@pytest.mark.parametrize("table", ["gc", "gc.run"])
@pytest.mark.parametrize("word", ["confirm", "clock-is-right", "after_restore"])
@pytest.mark.usefixtures("full")
def test_a_file_does_not_say_yes(cli, uri, here, table, word):
    write(here, f"[{table}]\n{word} = true\n")
    code, _, err = cli("gc", "run", uri)
    assert code == 2
    assert f"say --{word.replace('_', '-')}" in err
