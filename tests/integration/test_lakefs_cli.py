"""Commands on a repository of a lakeFS server: what they say, and what they refuse."""

import pytest

from lakefs_world import DAY, world


@pytest.fixture
def here(tmp_path, monkeypatch):
    with world(tmp_path, monkeypatch) as found:
        monkeypatch.setenv("DESILT_DB", f"sqlite://{tmp_path}/records.db")
        yield found


@pytest.fixture
def uri(here):
    return here.subject.uri


def test_a_path_that_a_tag_lacks_is_explained_by_the_branch_that_has_it(here, uri, cli):
    here.upload("main", "old", b"1")
    here.subject.commit("main", "old")
    here.subject.tag("v1", "main")
    address = here.upload("main", "new", b"22")
    here.subject.commit("main", "new")
    code, out, err = cli("explain", uri, "new")
    assert (code, err) == (0, "")
    assert out.startswith(f"{address} is kept: 1 commit holds it, reachable from main.")
    assert cli("explain", uri, "new", "--ref", "v1")[0] == 1


@pytest.mark.parametrize("words", [["nowhere"], ["a", "--ref", "nowhere"]])
def test_what_is_nowhere_is_told_by_its_own_name(here, uri, cli, words):
    here.upload("main", "a", b"1")
    here.subject.commit("main", "a")
    here.subject.tag("v1", "main")
    code, _, err = cli("explain", uri, *words)
    assert code == 1
    assert "nowhere" in err
    assert "v1" not in err


@pytest.mark.parametrize("words", [["ls", "main"], ["log"], ["branches"], ["rm", "main", "a"], ["recover"]])
def test_what_is_of_a_lake_alone_is_refused_in_one_line(uri, cli, words):
    code, out, err = cli("lake", words[0], uri, *words[1:])
    assert (code, out) == (2, "")
    assert "`desilt lakefs import` copies them into a lake" in err
    assert len(err.splitlines()) == 1


def test_a_check_tells_of_what_it_found_without_empty_words(here, uri, cli):
    here.upload("main", "gone", b"1")
    here.upload("main", "kept", b"22")
    here.subject.commit("main", "both")
    here.subject.branch("other", "main")
    lonely = here.upload("other", "other", b"333")
    commit = here.subject.commit("other", "other")
    here.subject.delete_branch("other")
    here.wait(40 * DAY)
    here.repository.store.delete_many([lonely])
    out = cli("fsck", uri)[1]
    assert "\n  other: there is no object at data/" in out
    assert f"\n  commit {commit}\n" in out
    assert " at :" not in out


def test_statistics_send_nobody_to_a_job_that_is_refused_there(here, uri, cli):
    here.upload("main", "kept", b"22")
    here.subject.commit("main", "kept")
    here.subject.branch("other", "main")
    here.upload("other", "other", b"333")
    here.subject.commit("other", "other")
    here.subject.delete_branch("other")
    out = cli("stats", uri)[1]
    assert "(`desilt gc plan --rules server`)" in out
    assert "desilt collect" not in out


def test_the_page_of_a_run_is_where_people_can_open_it(here, uri, cli):
    here.upload("main", "kept", b"22")
    here.subject.commit("main", "kept")
    out = cli("gc", "plan", uri)[1]
    assert f"The whole list is in file://{here.model.root}/{here.subject.name}/_desilt/runs/gc/" in out


def test_a_file_of_upkeep_is_told_what_cannot_be_done_there(uri, cli, tmp_path):
    (tmp_path / "upkeep.yaml").write_text("expire: {older_than: 30d}\n")
    code, out, _ = cli("upkeep", "lint", uri, str(tmp_path / "upkeep.yaml"))
    assert code == 1
    assert "a lakeFS server lets nobody change its commits" in out
    assert cli("upkeep", "set", uri, str(tmp_path / "upkeep.yaml"))[0] != 0


@pytest.mark.parametrize(("gc", "warned"), [("{rules: server}", False), ("{}", True), ("{to: trash}", False)])
def test_a_file_of_upkeep_need_not_say_what_is_usual_there(uri, cli, tmp_path, gc, warned):
    """What is committed goes to the trash, and the trash is emptied."""
    (tmp_path / "upkeep.yaml").write_text(f"gc: {gc}\ntrash: {{older_than: 14d}}\n")
    assert (
        "no step moves anything to the trash" in cli("upkeep", "lint", uri, str(tmp_path / "upkeep.yaml"))[1]
    ) is warned
