"""What is staged, read by the column for a run: all of one moment, whoever writes meanwhile."""

import pyarrow as pa
import pytest

from desilt.columns.buckets import every
from desilt.columns.files import Files
from desilt.domain.entry import Entry
from desilt.domain.run import Run
from desilt.errors import Unreadable
from desilt.executors.executor import HERE
from desilt.lake import areas, refs, staging
from desilt.testing import oracle
from words import committed, put, seal, stage, write


def held(repo):
    """The addresses that a run finds staged, those that are there twice as often."""
    found = repo.source(HERE).staged(Run("00000000000000-00000000", "gc", repo.clock()))
    files = Files(repo.store)
    rows = [files.rows(file, bucket, ["hash", "address"]) for file in found.files for bucket in every(file.buckets)]
    addresses = [address for some in rows for address in some["address"].to_pylist()]
    assert len(addresses) == found.entries
    return sorted(addresses)


def by_the_column(tx, token, at_once):
    return [address for some in staging.addresses(tx, token, at_once=at_once) for address in some.to_pylist()]


def token_of(tx, repo, branch):
    return refs.branch(tx, repo.uid, branch).token


def test_a_run_holds_what_is_staged_on_every_branch_sealed_or_hidden(repo):
    committed(repo, "main", a="1", b="1")
    repo.create_branch("dev", "main")
    write(repo, "main", b="2", c="3")
    seal(repo, "main")
    write(repo, "main", b="4")
    write(repo, "dev", b="5")
    assert held(repo) == sorted(oracle.staged(repo))
    assert len(held(repo)) == 4


def test_where_nothing_is_staged_there_is_no_file(repo):
    committed(repo, "main", a="1")
    repo.remove("main", "a")
    assert held(repo) == []
    assert repo.source(HERE).staged(Run("00000000000000-00000000", "gc", repo.clock())).files == []


@pytest.mark.parametrize("at_once", [1, 2, 3, 7, 8, 100])
def test_however_many_are_read_at_once_none_is_missing_or_told_twice(repo, at_once):
    wanted = [put(repo, "main", f"p{number}") for number in range(8)]
    repo.remove("main", "p3")
    with repo.database.read() as tx:
        token = token_of(tx, repo, "main")
        assert by_the_column(tx, token, at_once) == [one for number, one in enumerate(wanted) if number != 3]
        assert by_the_column(tx, token, at_once) == [address for _, _, address in staging.entries(tx, token)]


@pytest.mark.parametrize("meanwhile", ["commit", "reset", "overwrite", "delete the branch"])
def test_what_was_staged_when_it_began_is_in_it_whatever_happens_meanwhile(repo, monkeypatch, meanwhile):
    monkeypatch.setattr(areas, "ENTRIES_TO_A_FILE", 1)
    repo.create_branch("dev", "main")
    wanted = [put(repo, branch, f"p{number}") for branch in ("main", "dev") for number in range(6)]
    real, done = areas.put_addresses, []

    def happen(*given):
        if not done:
            done.append(meanwhile)
            if meanwhile == "commit":
                repo.commit("main", "meanwhile"), repo.commit("dev", "meanwhile")
            elif meanwhile == "reset":
                repo.reset("main"), repo.reset("dev")
            elif meanwhile == "overwrite":
                for number in range(6):
                    put(repo, "main", f"p{number}", "other"), put(repo, "dev", f"p{number}", "other")
            else:
                repo.reset("dev"), repo.delete_branch("dev")
        return real(*given)

    def reading(tx, token):  # at least one page is still to be read when the first file is written
        yield from staging_addresses(tx, token, at_once=2)

    staging_addresses = staging.addresses
    monkeypatch.setattr(staging, "addresses", reading)
    monkeypatch.setattr(areas, "put_addresses", happen)
    assert held(repo) == sorted(wanted)
    assert done == [meanwhile]


@pytest.mark.usefixtures("unsound")
def test_an_address_with_a_line_end_in_it_is_read_whole(repo):
    odd = "s3://elsewhere/a\nb\n"
    stage(
        repo, "main", *(Entry(f"p{number}", odd * number, 1, "", 1) for number in (1, 2)), Entry("q", "plain", 1, "", 1)
    )
    with repo.database.read() as tx:
        assert by_the_column(tx, token_of(tx, repo, "main"), 10) == [odd, odd * 2, "plain"]


@pytest.mark.usefixtures("unsound")
def test_a_whole_address_that_leads_into_the_repository_holds_what_it_points_to(repo):
    mine = put(repo, "main", "a")
    repo.reset("main")
    whole = f"s3://bucket/{repo.prefix}{mine}"
    stage(repo, "main", Entry("a", whole, 1, "", 1), Entry("b", "s3://bucket/elsewhere", 1, "", 1))
    assert held(repo) == sorted([mine, "s3://bucket/elsewhere"])


def test_a_row_without_an_address_is_not_passed_over(repo):
    committed(repo, "main", a="1")
    write(repo, "main", b="2", c="3")
    repo.remove("main", "a")
    with repo.database.read() as tx, pytest.raises(Unreadable, match="1 of 3 rows name no object"):
        tx.texts("SELECT address AS text FROM staging")


@pytest.mark.usefixtures("unsound")
def test_a_line_end_in_one_text_does_not_make_up_for_another_that_is_missing(repo):
    """Together they come to as many pieces as there are rows, and none of the pieces is a text of theirs."""
    committed(repo, "main", a="1")
    repo.remove("main", "a")
    stage(repo, "main", Entry("b", "s3://elsewhere/b\nc", 1, "", 1))
    with repo.database.read() as tx, pytest.raises(Unreadable, match="1 of 2 rows name no object"):
        tx.texts("SELECT address AS text FROM staging")


@pytest.mark.usefixtures("unsound")
def test_staged_rows_without_their_branch_stop_a_run(repo):
    repo.create_branch("dev", "main")
    write(repo, "main", a="1")
    write(repo, "dev", a="1")
    with repo.database.write() as tx:
        tx.execute("DELETE FROM branches WHERE name = 'dev'")
    with pytest.raises(Unreadable, match="belongs to no branch"):
        held(repo)


def test_a_file_that_cannot_be_written_stops_a_run(repo, monkeypatch):
    monkeypatch.setattr(areas, "ENTRIES_TO_A_FILE", 1)
    write(repo, "main", a="1")

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(areas, "put_addresses", full)
    with pytest.raises(OSError, match="no space"):
        held(repo)


@pytest.mark.parametrize(("rows", "size"), [(3, 1 << 20), (1 << 20, 30)])
def test_files_are_cut_by_rows_and_by_bytes(rows, size):
    texts = [f"{number:010d}" for number in range(10)]
    found = list(areas.together((pa.array([one]) for one in texts), rows=rows, size=size))
    assert [one for some in found for one in some.to_pylist()] == texts
    assert max(map(len, found)) <= 3
    assert len(found) >= 4
