"""What many metaranges list between them: kept, checked, and never more than was asked for."""

from datetime import UTC, datetime

import pytest

from desilt.cache import metaranges as metarange_cache
from desilt.cache.metaranges import FOLDER, lists
from desilt.errors import MissingTable
from desilt.executors.executor import HERE, Here

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def repo(repo, monkeypatch):
    monkeypatch.setattr(metarange_cache, "TO_A_FILE", 2)
    return repo


@pytest.fixture
def metaranges(repo):
    made = []
    for number in range(5):
        repo.put("main", f"file-{number}", b"x")
        made.append(repo.commit("main", "more").metarange)
    return made


def listed(store, ranges, metaranges):
    """The ranges of some metaranges; what each of them lists is compared here."""
    found = lists(HERE, store, ranges, metaranges)
    assert found.of == {name: [one.id for one in ranges.metarange(name)] for name in metaranges if name}
    return found.ranges


def straight(repo, metaranges):
    return {one.id: one for name in metaranges for one in repo.ranges.metarange(name)}


def kept(repo):
    return [key for batch in repo.store.list(repo.prefix + FOLDER) for key in batch["key"].to_pylist()]


def test_it_says_what_metaranges_say_before_and_after_it_is_kept(repo, metaranges):
    for _ in range(2):
        assert listed(repo.store, repo.ranges, ["", *metaranges, *metaranges]) == straight(repo, metaranges)
    assert len(kept(repo)) == 2  # two metaranges to a file, and one that waits for another


def test_only_new_metaranges_are_read(repo, metaranges, monkeypatch):
    listed(repo.store, repo.ranges, metaranges)
    read = []
    whole = repo.ranges.metarange
    monkeypatch.setattr(repo.ranges, "metarange", lambda name: read.append(name) or whole(name))
    lists(HERE, repo.store, repo.ranges, metaranges)
    assert read == metaranges[4:]


def test_a_range_of_a_commit_that_is_gone_is_not_listed(repo, metaranges):
    listed(repo.store, repo.ranges, metaranges)
    assert listed(repo.store, repo.ranges, metaranges[1:]) == straight(repo, metaranges[1:])
    assert listed(repo.store, repo.ranges, []) == {}


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"version": 1, "metaranges": [], "ranges": []}'])
def test_a_damaged_file_is_not_believed(repo, metaranges, damage):
    listed(repo.store, repo.ranges, metaranges)
    for key in kept(repo):
        repo.store.put(key, [damage])
    assert listed(repo.store, repo.ranges, metaranges) == straight(repo, metaranges)


def test_no_flipped_byte_goes_unnoticed(repo, metaranges):
    listed(repo.store, repo.ranges, metaranges)
    key = kept(repo)[0]
    sound = repo.store.get(key)
    for at in range(0, len(sound), 11):
        repo.store.put(key, [sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :]])
        assert listed(repo.store, repo.ranges, metaranges) == straight(repo, metaranges)


def test_many_new_ones_are_read_in_pieces_and_the_few_that_are_left_here(repo, metaranges):
    given = []

    class Watched(Here):
        def __call__(self, work, items, **words):
            given.extend(items)
            return super().__call__(work, items, **words)

    found = lists(Watched(), repo.store, repo.ranges, metaranges)
    assert [piece.metaranges for piece in given] == [tuple(metaranges[:2]), tuple(metaranges[2:4])]
    assert found.of.keys() == set(metaranges)
    assert given.clear() is None
    assert lists(Watched(), repo.store, repo.ranges, metaranges).of == found.of
    assert given == []


@pytest.mark.parametrize("harm", ["lost", "damaged"])
def test_what_a_piece_wrote_and_is_not_there_is_read_here(repo, metaranges, harm):
    class Losing(Here):
        def __call__(self, work, items, **words):
            keys = super().__call__(work, items, **words)
            for key in keys:
                repo.store.delete_many([key]) if harm == "lost" else repo.store.put(key, [b"{}"])
            return keys

    found = lists(Losing(), repo.store, repo.ranges, metaranges)
    assert found.ranges == straight(repo, metaranges)
    assert found.of.keys() == set(metaranges)


def test_a_metarange_that_is_missing_stops_whoever_reads_it(repo, metaranges):
    repo.store.delete_many([f"{repo.prefix}_lakefs/{metaranges[1]}"])
    with pytest.raises(MissingTable):
        lists(HERE, repo.store, repo.ranges, metaranges)
