"""Commands about history that was edited."""

import json

import pytest

from desilt.lake import Lake
from desilt.lake.lake import locate
from words import committed, contents, reparent, root


@pytest.fixture
def place(tmp_path):
    return f"{tmp_path}/lake#demo"


@pytest.fixture
def repo(place):
    lake = Lake.create(locate(place))
    yield lake.create_repository("demo")
    lake.close()


def test_a_merge_that_is_refused_says_how_to_go_on_and_that_works(cli, place, repo):
    base = committed(repo, "main", deleted="1")
    repo.create_branch("dev", "main")
    repo.remove("main", "deleted")
    for branch in ("main", "dev"):
        reparent(repo, committed(repo, branch, **{branch: "2"}), root(repo))
    code, out, err = cli("lake", "merge", place, "dev", "main")
    assert (code, out) == (1, "")
    assert "--base" in err
    assert cli("lake", "diff", place, "main", "dev", "--since-base")[0] == 1
    code, out, _ = cli("lake", "merge", place, "dev", "main", "--base", base.id[:12])
    assert (code, out.startswith("Merged dev into main")) == (0, True)
    assert contents(repo, "main") == {"main": "2", "dev": "2"}


def test_show_tells_former_parents_where_there_are_any(cli, place, repo):
    before = committed(repo, "main", a="1")
    after = committed(repo, "main", a="2")
    assert "was " not in cli("lake", "show", place, "main")[1]
    assert json.loads(cli("lake", "show", place, "main", "--json")[1])["was"] is None
    reparent(repo, after, root(repo))
    (line,) = [line for line in cli("lake", "show", place, "main")[1].splitlines() if line.startswith("was ")]
    assert line.split() == ["was", before.id]
    assert json.loads(cli("lake", "show", place, "main", "--json")[1])["was"] == [before.id]
