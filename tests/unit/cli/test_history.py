"""Commands about history that was edited."""

import json

from words import committed, contents, reparent, root


def test_a_merge_that_is_refused_says_how_to_go_on_and_that_works(cli, uri, repo):
    base = committed(repo, "main", deleted="1")
    repo.create_branch("dev", "main")
    repo.remove("main", "deleted")
    for branch in ("main", "dev"):
        reparent(repo, committed(repo, branch, **{branch: "2"}), root(repo))
    code, out, err = cli("lake", "merge", uri, "dev", "main")
    assert (code, out) == (1, "")
    assert "--base" in err
    assert cli("lake", "diff", uri, "main", "dev", "--since-base")[0] == 1
    code, out, _ = cli("lake", "merge", uri, "dev", "main", "--base", base.id[:12])
    assert (code, out.startswith("Merged dev into main")) == (0, True)
    assert contents(repo, "main") == {"main": "2", "dev": "2"}


def test_show_tells_former_parents_where_there_are_any(cli, uri, repo):
    before = committed(repo, "main", a="1")
    after = committed(repo, "main", a="2")
    assert "was " not in cli("lake", "show", uri, "main")[1]
    assert json.loads(cli("lake", "show", uri, "main", "--json")[1])["was"] is None
    reparent(repo, after, root(repo))
    (line,) = [line for line in cli("lake", "show", uri, "main")[1].splitlines() if line.startswith("was ")]
    assert line.split() == ["was", before.id]
    assert json.loads(cli("lake", "show", uri, "main", "--json")[1])["was"] == [before.id]
