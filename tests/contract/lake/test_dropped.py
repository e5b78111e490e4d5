"""What staging areas let go of is written down, in the transaction in which they do."""

from datetime import timedelta

from desilt.lake import dropped
from desilt.testing import oracle
from words import seal


def let_go(repo):
    """As it is told, however many at a time: each once."""
    told = []
    with repo.database.read() as tx:
        for at_once in (1, 2, 100):
            pages = dropped.since(tx, repo.uid, repo.clock() - timedelta(days=1), at_once=at_once)
            told.append(sorted(one for some in pages for one in some.to_pylist()))
    assert told[0] == told[1] == told[2]
    assert len(set(told[0])) == len(told[0])
    return set(told[0])


def test_whatever_is_staged_no_longer_is_written_down(repo):
    first, second, third, fourth = (
        repo.put("main", path, path.encode()).address for path in ("over", "removed", "reset", "below/x")
    )
    repo.put("main", "over", b"new")
    repo.remove("main", "removed")
    repo.reset("main", path="reset")
    repo.reset("main", prefix="below/")
    assert let_go(repo) == {first, second, third, fourth}
    fifth = repo.put("main", "all", b"5").address
    repo.reset("main")
    assert fifth in let_go(repo)


def test_what_a_commit_takes_is_not_let_go_of_but_what_it_hid_is(repo):
    hidden = repo.put("main", "a", b"hidden").address
    seal(repo, "main")
    shown = repo.put("main", "a", b"shown").address
    kept = repo.put("main", "b", b"kept").address
    repo.commit("main", "one")
    assert let_go(repo) == {hidden}
    assert {shown, kept} <= oracle.committed(repo)


def test_what_goes_with_its_branch_is_written_down(repo):
    repo.create_branch("dev", "main")
    lost = repo.put("dev", "a", b"a").address
    repo.delete_branch("dev", force=True)
    assert let_go(repo) == {lost}


def test_what_a_gathering_reset_hides_is_written_down(repo):
    hidden = repo.put("main", "a", b"hidden").address
    seal(repo, "main")
    repo.put("main", "a", b"shown")
    other = repo.put("main", "b", b"b").address
    repo.reset("main", path="b")
    assert let_go(repo) == {hidden, other}


def test_where_and_when_it_was_is_known(repo):
    address = repo.put("main", "some/path", b"x").address
    before = repo.clock()
    repo.reset("main")
    with repo.database.read() as tx:
        branch, path, at = dropped.last(tx, repo.uid, address)
    assert (branch, path) == (repo.resolve("main").branch.uid, b"some/path")
    assert before < at < repo.clock()


def test_what_was_dropped_from_many_places_is_told_once_and_the_rest_with_it(repo):
    shared = repo.put("main", "p0", b"shared").address
    for number in range(1, 6):
        repo.copy("main", "p0", "main", f"p{number}")
    others = {repo.put("main", f"q{number}", b"own").address for number in range(3)}
    repo.reset("main")
    assert let_go(repo) == {shared, *others}


def test_what_was_dropped_before_is_not_told(repo):
    early = repo.put("main", "a", b"1").address
    repo.reset("main")
    at = repo.clock()
    late = repo.put("main", "a", b"2").address
    repo.reset("main")
    with repo.database.read() as tx:
        found = [one for some in dropped.since(tx, repo.uid, at) for one in some.to_pylist()]
    assert (found, early in let_go(repo)) == ([late], True)


def test_what_was_dropped_at_the_very_moment_is_told(repo):
    address = repo.put("main", "a", b"1").address
    repo.reset("main")
    with repo.database.read() as tx:
        _, _, at = dropped.last(tx, repo.uid, address)
        assert [one for some in dropped.since(tx, repo.uid, at) for one in some.to_pylist()] == [address]
