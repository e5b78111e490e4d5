"""What can be refused without Spark, and what has nothing to do, does not start it: though somebody said `--spark`."""

import json

import pytest

from desilt.executors import session


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch):
    def start(*_, **__):
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "session", start)


@pytest.fixture
def swept(cli, uri, repo):
    """A run that moved nothing to the trash."""
    repo.put("main", "a", b"a")
    repo.commit("main", "a")
    return json.loads(cli("gc", "run", uri, "--to", "trash", "--json")[1])["run"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["sweep", "nosuch"], 1, "there is no run 'nosuch'"),
        (["restore", "nosuch"], 1, "there is no swept run 'nosuch'"),
        (["purge", "--run", "nosuch"], 1, "there is no swept run 'nosuch'"),
        (["gc", "plan", "--branch", "nosuch"], 2, "'nosuch' is neither a branch nor"),
        (["gc", "run", "--branch", "nosuch"], 2, "'nosuch' is neither a branch nor"),
        (["gc", "plan", "--inventory", "/nosuch"], 1, "there is no inventory"),
        (["gc", "plan", "--inventory", "s3://nosuch/x", "--branch", "main"], 2, "leave --branch out"),
        (["gc", "plan", "--now", "yesterday"], 2, "not a time"),
        (["lifecycle", "plan"], 2, "has no lifecycle policy"),
        (["lifecycle", "run", "--policy", "/nosuch"], 2, "/nosuch"),
        (["expire", "plan", "--older-than", "soon"], 2, "soon"),
        (["collect", "plan", "--older-than", "soon"], 2, "soon"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_it_is_refused(cli, uri, words, code, said):
    job, *rest = words
    where = [job, rest.pop(0), uri] if rest and rest[0] in ("plan", "run") else [job, uri]
    refused, out, err = cli(*where, *rest, "--spark")
    assert (refused, out) == (code, "")
    assert said in err


@pytest.mark.parametrize("repo", ["/nosuch/lake#mine", "s3://bucket"], ids=["no lake", "no database"])
def test_a_lake_that_is_not_there_is(cli, repo):
    code, _, err = cli("gc", "plan", repo, "--spark")
    assert code in (1, 2)
    assert err.count("\n") == 1


def test_what_has_nothing_to_do_is_done(cli, uri, swept):
    assert cli("restore", uri, swept, "--spark")[:2] == (0, "0 objects of 0 B restored\n")
    assert cli("purge", uri, "--spark")[0] == 0
    assert cli("sweep", uri, swept, "--spark")[0] == 0
