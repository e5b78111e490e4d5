"""What every Source must do, as tests: subclass it with a fixture ``subject``, and pytest runs them."""

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from desilt.columns.buckets import every
from desilt.columns.files import Files, HeldFile
from desilt.columns.hashing import address_hash
from desilt.domain.run import Run, new_run
from desilt.errors import Damaged, DesiltError, Unreadable
from desilt.executors.executor import HERE
from desilt.repository.gate import Safety
from desilt.repository.source import Source
from desilt.testing.subject import Subject

HOUR = timedelta(hours=1)


def source(subject: Subject) -> Source:
    return subject.repository.source(HERE)


def run_of(subject: Subject) -> Run:
    """A run that nobody has begun: a folder to write into."""
    return new_run("contract", now=subject.now(), started_at=subject.now(), entropy=b"made")


def addresses(subject: Subject, *files: HeldFile) -> set[str]:
    """What some files of addresses hold, read as a judge reads them."""
    opened = Files(subject.repository.store)
    return {
        address
        for file in files
        for bucket in every(file.buckets)
        for address in opened.rows(file, bucket, ["hash", "address"])["address"].to_pylist()
    }


def committed(subject: Subject) -> dict[str, set[str]]:
    """Of every commit, the addresses that its tables hold."""
    here = source(subject)
    seen = here.snapshot(subject.now())
    lists = here.lists(seen.in_time)
    opened, by_table = Files(subject.repository.store), dict[str, set[str]]()
    for placed in here.entries(list(lists.ranges.values())):
        for bucket in every(placed.file.buckets):
            rows = opened.rows(placed.file, bucket, ["hash", "owner", "address"])
            for owner, address in zip(rows["owner"].to_pylist(), rows["address"].to_pylist(), strict=True):
                if owner in placed.ranges:
                    by_table.setdefault(placed.ranges[owner], set()).add(address)
    return {
        commit.id: {one for table in lists.of.get(commit.metarange, ()) for one in by_table.get(table, ())}
        for commit in seen.commits.values()
    }


def shows_staged(subject: Subject) -> None:
    if not subject.shows_staged:
        pytest.skip("nobody can know here of what is not committed")


def tells_of_the_past(subject: Subject) -> None:
    """Only a repository whose every move is written down knows what was held lately."""
    if subject.repository.gate.safety is not Safety.ATOMIC:
        pytest.skip("what was held lately is not written down here")


class SourceContract:
    """The read side: all there is, or an error."""

    def test_a_snapshot_has_every_ref_and_every_commit_with_its_parents(self, subject: Subject) -> None:
        subject.upload("main", "a", b"1")
        first = subject.commit("main", "first")
        subject.branch("dev", "main")
        subject.upload("dev", "b", b"2")
        second = subject.commit("dev", "second")
        subject.tag("v1", "main")
        seen = source(subject).snapshot(subject.now())
        assert {branch.name: branch.head for branch in seen.branches} == {"main": first, "dev": second}
        assert {tag.name: tag.target for tag in seen.tags} == {"v1": first}
        assert seen.commits[second].parents == (first,)
        assert {first, second} <= seen.commits.keys()

    def test_a_commit_that_no_ref_reaches_is_in_it(self, subject: Subject) -> None:
        if not subject.shows_unreached:
            pytest.skip("nobody can know here of commits that no ref reaches")
        subject.branch("dev", "main")
        subject.upload("dev", "a", b"1")
        lonely = subject.commit("dev", "lonely")
        subject.delete_branch("dev")
        assert lonely in source(subject).snapshot(subject.now()).commits

    def test_a_revision_is_the_same_until_something_moves(self, subject: Subject) -> None:
        here = source(subject)
        before = here.snapshot(subject.now()).revision
        assert here.snapshot(subject.now()).revision == before
        subject.upload("main", "a", b"1")
        subject.commit("main", "moved")
        assert here.snapshot(subject.now()).revision != before

    def test_what_is_missing_stops_whoever_looks(self, subject: Subject) -> None:
        subject.upload("main", "a", b"1")
        made = subject.commit("main", "first")
        with subject.lose_commit(made), pytest.raises(Unreadable):
            source(subject).snapshot(subject.now())
        with subject.lose_branches(), pytest.raises(Unreadable):
            source(subject).snapshot(subject.now())
        assert made in source(subject).snapshot(subject.now()).commits

    def test_everything_staged_anywhere_is_held(self, subject: Subject) -> None:
        shows_staged(subject)
        subject.branch("dev", "main")
        wanted = {subject.upload("main", "a", b"1"), subject.upload("dev", "a", b"2"), subject.upload("dev", "b", b"3")}
        staged = source(subject).staged(run_of(subject))
        assert addresses(subject, *staged.files) == wanted
        assert staged.entries == len(wanted)
        subject.commit("main", "taken")
        assert len(addresses(subject, *source(subject).staged(run_of(subject)).files)) == 2

    def test_an_upload_under_way_is_held(self, subject: Subject) -> None:
        address = subject.begin_upload("main", "a")
        if address is None:
            pytest.skip("nobody can know of uploads here")
        assert addresses(subject, source(subject).uploads(run_of(subject), subject.now()).file) == {address}
        subject.wait(subject.repository.grace + HOUR)
        assert addresses(subject, source(subject).uploads(run_of(subject), subject.now()).file) == set()

    def test_what_lost_a_reference_lately_is_known(self, subject: Subject) -> None:
        tells_of_the_past(subject)
        address = subject.upload("main", "a", b"1")
        subject.unstage("main")
        here, since = source(subject), subject.now() - HOUR
        assert addresses(subject, here.dropped(run_of(subject), since)) == {address}
        assert addresses(subject, here.dropped(run_of(subject), subject.now() + HOUR)) == set()
        assert addresses(subject, here.dropped(run_of(subject), None)) == set()

    def test_every_commit_holds_what_it_was_made_with(self, subject: Subject) -> None:
        one = subject.upload("main", "a", b"1")
        first = subject.commit("main", "first")
        two = subject.upload("main", "a", b"2")
        three = subject.upload("main", "b", b"3")
        second = subject.commit("main", "second")
        found = committed(subject)
        assert (found[first], found[second]) == ({one}, {two, three})
        assert committed(subject) == found  # decoded once, read again

    def test_an_inventory_lists_every_object_once(self, subject: Subject) -> None:
        wanted = [subject.upload("main", f"path-{number}", b"x" * number) for number in range(1, 6)]
        subject.unstage("main")
        here = source(subject)
        listed = here.inventory(run_of(subject)).listed
        opened, found = Files(subject.repository.store), list[str]()
        for one in listed:
            for bucket in every(one.file.buckets):
                rows = opened.rows(one.file, bucket, ["hash", "folder", "name"])
                found += [f"{row['folder']}{row['name']}" for row in rows.to_pylist()]
        assert sorted(found) == sorted(wanted)
        assert sum(one.bytes for one in listed) == 15
        assert subject.repository.layout.group_of(wanted[0]) in here.groups()

    def test_an_inventory_may_be_of_some_groups_and_knows_their_folders(self, subject: Subject) -> None:
        subject.branch("dev", "main")
        here, layout = source(subject), subject.repository.layout
        one, two = subject.upload("main", "a", b"1"), subject.upload("dev", "b", b"22")
        if layout.group_of(one) == layout.group_of(two):
            pytest.skip("all objects are in one group here")
        listed = here.inventory(run_of(subject), groups=[layout.group_of(two)]).listed
        assert sum(one.bytes for one in listed) == 2
        folders = here.folders([layout.group_of(two)])
        assert any((subject.repository.prefix + two).startswith(folder) or two.startswith(folder) for folder in folders)
        here.check_inventory(here.folders(here.groups()))  # all of it is known

    def test_what_things_were_uploaded_to_has_a_name_even_if_it_is_gone(self, subject: Subject) -> None:
        subject.branch("dev", "main")
        layout = subject.repository.layout
        kept, gone = (layout.group_of(subject.upload(branch, "a", b"1")) for branch in ("main", "dev"))
        if kept == gone:
            pytest.skip("all objects are in one group here")
        subject.unstage("dev")
        subject.delete_branch("dev")
        names = source(subject).group_names()
        assert names[kept] == "main"
        assert names[gone].startswith("dev, deleted")
        assert gone in names[gone]  # told from another of that name

    def test_what_is_staged_points_to_its_objects_by_branch(self, subject: Subject) -> None:
        shows_staged(subject)
        subject.branch("dev", "main")
        wanted = {"main": subject.upload("main", "a", b"1"), "dev": subject.upload("dev", "b", b"22")}
        found = source(subject).staged_pointers()
        rows = found.rows.to_pylist()
        sizes = {found.names[row["place"]]: row["size_bytes"] for row in rows}
        assert sizes == {"main": 1, "dev": 2}
        hashes = {found.names[row["place"]]: row["hash"] for row in rows}
        assert hashes == {name: int(address_hash(pa.array([one]))[0]) for name, one in wanted.items()}

    def test_a_ref_means_a_commit(self, subject: Subject) -> None:
        subject.upload("main", "a", b"1")
        made = subject.commit("main", "first")
        subject.tag("v1", "main")
        here = source(subject)
        assert {here.resolve(name) for name in ("main", "v1", made)} == {made}
        with pytest.raises(DesiltError):
            here.resolve("nowhere")

    def test_the_tables_of_a_commit_are_read_one_by_one_and_have_each_entry(self, subject: Subject) -> None:
        some = {f"path-{number}": b"x" * number for number in range(1, 6)}
        wanted = {path: subject.upload("main", path, body) for path, body in some.items()}
        made = subject.commit("main", "first")
        here = source(subject)
        commits = here.snapshot(subject.now()).commits
        tables = here.tables_of(commits[made])
        rows = [row for table in tables for row in here.rows_of(table).to_pylist()]
        assert {subject.uploaded_as(row["path"].decode()): row["address"] for row in rows} == wanted
        assert sorted(row["size"] for row in rows) == list(range(1, 6))
        assert sum(table.count for table in tables) == len(rows)
        for table in tables:  # all of them in order, where tables say which paths they have
            paths = [row["path"] for row in here.rows_of(table).to_pylist()]
            assert paths == sorted(paths)
            assert (table.min_key, table.max_key) in ((paths[0], paths[-1]), (b"", b""))
        if tables[0].max_key:
            assert [row["path"] for row in rows] == sorted(row["path"] for row in rows)
        with pytest.raises(DesiltError):  # counted otherwise, it is not the table that was listed
            here.rows_of(replace(tables[0], count=tables[0].count + 1))

    def test_what_the_next_commit_takes_is_told_by_branch(self, subject: Subject) -> None:
        subject.upload("main", "old", b"1")
        subject.commit("main", "first")
        subject.branch("dev", "main")
        here = source(subject)
        assert here.staged_branches() == []
        shows_staged(subject)
        subject.upload("dev", "new", b"2")
        newer = subject.upload("dev", "new", b"33")
        assert here.staged_branches() == ["dev"]
        rows = [row for batch in here.changes_on("dev") for row in batch.to_pylist()]
        assert [(row["path"], row["address"], row["size"]) for row in rows] == [(b"new", newer, 2)]
        assert [row for batch in here.changes_on("main") for row in batch.to_pylist()] == []

    def test_nobody_takes_anything_on_a_branch_that_is_not_there(self, subject: Subject) -> None:
        with pytest.raises(DesiltError):
            list(source(subject).changes_on("nowhere"))

    def test_decoded_entries_that_are_damaged_are_made_again(self, subject: Subject) -> None:
        address = subject.upload("main", "a", b"1")
        made = subject.commit("main", "first")
        assert committed(subject)[made] == {address}
        here = source(subject)
        ranges = here.lists(here.snapshot(subject.now()).in_time).ranges
        (placed,) = here.entries(list(ranges.values()))
        whole = subject.repository.store.get(placed.file.key)
        subject.repository.store.put(placed.file.key, [bytes(len(whole))])
        with pytest.raises(Damaged):
            committed(subject)
        here.distrust([placed.file.key])
        assert committed(subject)[made] == {address}

    def test_a_layout_tells_groups_by_the_column(self, subject: Subject) -> None:
        subject.branch("dev", "main")
        layout = subject.repository.layout
        found = [subject.upload("main", "a", b"1"), subject.upload("dev", "b", b"2"), "_desilt/clock"]
        assert layout.groups(pa.array(found)).to_pylist() == [layout.group_of(one) for one in found[:2]] + [""]

    def test_a_layout_knows_an_object_from_anything_else(self, subject: Subject) -> None:
        address, layout = subject.upload("main", "a", b"1"), subject.repository.layout
        assert layout.is_object(address)
        assert not layout.is_table(address)
        for other in ("", address + "/", f"x{address}", layout.data, layout.tables, "_desilt/clock", f"../{address}"):
            assert not layout.is_object(other)

    def test_commits_that_were_released_lately_are_known(self, subject: Subject) -> None:
        tells_of_the_past(subject)
        subject.branch("dev", "main")
        subject.upload("dev", "a", b"1")
        made = subject.commit("dev", "released")
        assert made not in source(subject).released_since(subject.now() - HOUR)
        subject.delete_branch("dev")
        assert made in source(subject).released_since(subject.now() - HOUR)
        assert made not in source(subject).released_since(subject.now() + HOUR)

    def test_paths_are_found_that_only_old_commits_have(self, subject: Subject) -> None:
        subject.branch("dev", "main")
        subject.upload("dev", "old/a", b"1")
        subject.commit("dev", "old")
        if subject.shows_unreached:
            subject.delete_branch("dev")
        subject.upload("main", "new/b", b"2")
        if not subject.shows_staged:
            subject.commit("main", "new")
        here = source(subject)
        assert {subject.uploaded_as(path) for path in here.paths("")} == {"old/a", "new/b"}
        assert {subject.uploaded_as(path) for path in here.paths("old/")} == {"old/a"}
