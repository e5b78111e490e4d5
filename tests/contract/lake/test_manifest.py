"""Staging manifests: everything staged, as it was at one moment."""

import pytest

from desilt.errors import NotFound, Unreadable
from desilt.lake.manifest import ranges_of
from desilt.sstable.columns import decode_entries
from desilt.testing import oracle
from words import committed, contents, seal, write


def held(repo, manifest):
    """The addresses that ``manifest`` holds."""
    found = [
        entry.address
        for listed in ranges_of(repo.core).metarange(manifest.metarange)
        for entry in decode_entries(ranges_of(repo.core).read(listed))
    ]
    assert len(found) == manifest.entries
    return sorted(found)


def test_a_manifest_holds_what_is_staged_on_every_branch(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    write(repo, "main", b="2", c="3")
    write(repo, "dev", b="4")
    assert held(repo, repo.prepare_uncommitted()) == sorted(oracle.staged(repo))
    assert held(repo, repo.prepare_uncommitted("dev")) == [repo.stat("dev", "b").address]
    assert repo.prepare_uncommitted().generation == repo.generation()


def test_a_manifest_of_nothing_is_empty(repo):
    manifest = repo.prepare_uncommitted()
    assert (manifest.metarange, manifest.entries, held(repo, manifest)) == ("", 0, [])


def test_sealed_entries_are_held_and_so_are_those_that_newer_ones_hide(repo):
    hidden = repo.put("main", "a", b"1").address
    sealed = repo.put("main", "b", b"1").address
    seal(repo, "main")
    on_top = repo.put("main", "a", b"2").address
    assert held(repo, repo.prepare_uncommitted()) == sorted([hidden, sealed, on_top])


def test_the_same_bytes_staged_again_are_held_though_no_diff_of_content_shows_them(repo):
    committed(repo, "main", a="same")
    again = repo.put("main", "a", b"same").address
    assert held(repo, repo.prepare_uncommitted()) == [again]


def test_removals_hold_nothing(repo):
    committed(repo, "main", a="1")
    repo.remove("main", "a")
    assert repo.prepare_uncommitted().entries == 0


def test_a_manifest_changes_nothing_and_names_its_branches(repo):
    write(repo, "main", a="1")
    before = repo.generation()
    manifest = repo.prepare_uncommitted()
    assert [branch.name for branch in manifest.branches] == ["main"]
    assert (repo.generation(), contents(repo, "main")) == (before, {"a": "1"})


@pytest.mark.usefixtures("unsound")
def test_staged_rows_without_their_branch_stop_a_manifest(repo):
    repo.create_branch("dev", "main")
    write(repo, "dev", a="1")
    with repo.database.write() as tx:
        tx.execute("DELETE FROM branches WHERE name = 'dev'")
    with pytest.raises(Unreadable, match="belongs to no branch"):
        repo.prepare_uncommitted()


def test_a_manifest_of_an_unknown_branch_is_refused(repo):
    with pytest.raises(NotFound):
        repo.prepare_uncommitted("nosuch")


def test_what_is_committed_while_a_manifest_is_taken_is_still_in_it(repo, monkeypatch):
    address = repo.put("main", "a", b"1").address
    real = repo.store.put

    def commit_meanwhile(key, chunks):
        monkeypatch.undo()
        repo.commit("main", "meanwhile")
        return real(key, chunks)

    monkeypatch.setattr(repo.store, "put", commit_meanwhile)
    manifest = repo.prepare_uncommitted()
    assert held(repo, manifest) == [address]
    assert manifest.generation < repo.generation()
