"""Commits, branches and tags from a server's dump; and what is held, against the truth about every object."""

import json

import pyarrow as pa
import pytest

from desilt.domain.entry import decode_path
from desilt.domain.identity import commit_hash
from desilt.domain.times import seconds
from desilt.errors import CorruptTable, MissingTable, Unreadable
from desilt.lakefs import dump, staged
from desilt.lakefs.layout import LAYOUT
from desilt.lakefs.namespace import Namespace
from desilt.lakefs.server import DumpedRefs
from desilt.objects.local import LocalStore
from desilt.sstable.columns import entry_columns, whole
from desilt.sstable.table import RAW, Table
from desilt.sstable.values import RangeData, encode_range, read_metarange
from desilt.sstable.varint import encode
from desilt.sstable.wire import bytes_field, message_field, number_field, pack
from desilt.sstable.writer import write_table
from lakefs_server import ROOT, answers

PLACE = Namespace("s3://lake/capture")


def told(server):
    return dump.read(server.table, server.dump(), default_branch="main")


def test_every_commit_is_there_and_has_the_id_that_it_is_named_by(server):
    commits = told(server).snapshot.commits
    assert len(commits) == 6
    for commit in commits.values():
        facts = {"parents": commit.parents, "metarange": commit.metarange, "committer": commit.committer}
        rest = {"message": commit.message, "metadata": commit.metadata, "seconds": seconds(commit.created_at)}
        assert commit_hash(**facts, **rest) == commit.id


def test_commits_are_those_of_the_servers_logs(server):
    commits = told(server).snapshot.commits
    logged = {one["id"]: one for page in answers("log") for one in page["results"]}
    for name, one in logged.items():
        commit = commits[name]
        assert (commit.parents, commit.generation) == (tuple(one["parents"]), one["generation"])
        assert seconds(commit.created_at) == one["creation_date"]
    assert commits.keys() == logged.keys()  # one log is that of a deleted branch's last commit


def test_refs_are_those_of_the_servers_lists(server):
    found = told(server)
    branches = {one["id"]: one["commit_id"] for page in answers("branches, one to a page") for one in page["results"]}
    tags = {one["id"]: one["commit_id"] for page in answers("tags, one to a page") for one in page["results"]}
    assert {branch.name: branch.head for branch in found.snapshot.branches} == branches
    assert {tag.name: tag.target for tag in found.snapshot.tags} == tags
    assert found.hidden == frozenset()


def test_equal_refs_have_an_equal_revision(server):
    first, again = told(server), told(server)
    assert first.snapshot.revision == again.snapshot.revision
    other = dump.read(
        server.table, DumpedRefs(*(server.dump().commits, server.dump().branches, "")), default_branch="main"
    )
    assert other.snapshot.revision != first.snapshot.revision


class Made:
    """Tables of a dump, by hand."""

    def __init__(self):
        self.tables = {}

    def add(self, entity, records, *, count=None, kinds=("ranges", "metaranges")):
        keys, values = zip(*sorted(records.items()), strict=True)
        inner = self._table(keys, [pack(key, value) for key, value in zip(keys, values, strict=True)], kinds[0], entity)
        said = RangeData(inner, keys[0], keys[-1], 10, len(keys) if count is None else count)
        return self._table([keys[-1]], [encode_range(said)], kinds[1], entity)

    def _table(self, keys, values, kind, entity):
        rows = pa.RecordBatch.from_arrays([pa.array(keys, pa.binary()), pa.array(values, pa.binary())], schema=RAW)
        written = write_table(rows, kind=kind)
        name = f"{entity}-{kind}"
        self.tables[name] = (written.data, entity)
        return name

    def __call__(self, _, name):
        if name not in self.tables:
            raise MissingTable(name)
        return self.tables[name][0]


def commit_of(name, *parents, version=1):
    links = b"".join(bytes_field(7, parent) for parent in parents)
    return bytes_field(1, name) + message_field(4, number_field(1, 1000)) + links + number_field(8, version)


@pytest.fixture
def made(monkeypatch):
    """Our writer puts no entity into tables: what tells one is supplied here."""
    tables = Made()
    opened = Table.from_bytes

    def from_bytes(data, name):
        table = opened(data, name)
        entity = tables.tables.get(name, (b"", ""))[1]
        table.properties = {**table.properties, "entity": entity.split("/")[0].encode()}
        return table

    monkeypatch.setattr(dump.Table, "from_bytes", from_bytes)
    return tables


def refs_of(made, commits, branches):
    names = made.add("commit", commits), made.add("branch", branches)
    return DumpedRefs(names[0], names[1], "")


def test_the_parent_that_was_committed_to_comes_first_whatever_the_version(made):
    commits = {
        b"a": commit_of(b"a"),
        b"b": commit_of(b"b"),
        b"new": commit_of(b"new", b"a", b"b"),
        b"old": commit_of(b"old", b"a", b"b", version=0),
    }
    refs = refs_of(made, commits, {b"main": bytes_field(1, b"main") + bytes_field(2, b"new")})
    found = dump.read(made, refs, default_branch="main").snapshot.commits
    assert (found["new"].parents, found["old"].parents) == (("a", "b"), ("b", "a"))


def test_hidden_branches_hold_like_others(made):
    hidden = bytes_field(1, b"secret") + bytes_field(2, b"a") + number_field(5, 1)
    branches = {b"main": bytes_field(1, b"main") + bytes_field(2, b"a"), b"secret": hidden}
    found = dump.read(made, refs_of(made, {b"a": commit_of(b"a")}, branches), default_branch="main")
    assert found.hidden == {"secret"}
    assert found.snapshot.names == ["main", "secret"]


@pytest.mark.parametrize(
    ("commits", "branches", "fault"),
    [
        ({b"a": commit_of(b"a", b"none")}, {b"main": bytes_field(1, b"main") + bytes_field(2, b"a")}, "commit none"),
        ({b"a": commit_of(b"a")}, {b"main": bytes_field(1, b"main") + bytes_field(2, b"z")}, "commit z is missing"),
        ({b"a": commit_of(b"a")}, {b"dev": bytes_field(1, b"dev") + bytes_field(2, b"a")}, "branch 'main' is missing"),
        ({b"a": commit_of(b"b")}, {b"main": bytes_field(1, b"main") + bytes_field(2, b"a")}, "another name"),
        ({b"a": commit_of(b"a") + encode(5 << 3 | 2) + b"\x7f"}, {b"main": b""}, "ends too early"),
    ],
)
def test_a_dump_that_is_not_whole_is_refused(made, commits, branches, fault):
    with pytest.raises(Unreadable, match=fault):
        dump.read(made, refs_of(made, commits, branches), default_branch="main")


def test_no_commits_at_all_are_not_a_history(server):
    refs = server.dump()
    with pytest.raises(Unreadable, match="all of them"):
        dump.read(server.table, DumpedRefs("", refs.branches, refs.tags), default_branch="main")


def test_a_table_that_is_missing_cut_miscounted_or_of_another_kind_is_refused(made):
    main = {b"main": bytes_field(1, b"main") + bytes_field(2, b"a")}
    sound = refs_of(made, {b"a": commit_of(b"a")}, main)
    assert dump.read(made, sound, default_branch="main").snapshot.names == ["main"]
    with pytest.raises(CorruptTable, match="should be a dump of 'commit'"):
        dump.read(made, DumpedRefs(sound.branches, sound.branches, ""), default_branch="main")
    data, entity = made.tables["commit-ranges"]
    made.tables["commit-ranges"] = (data[:-1], entity)
    with pytest.raises(CorruptTable):
        dump.read(made, sound, default_branch="main")
    del made.tables["commit-ranges"]
    with pytest.raises(MissingTable):
        dump.read(made, sound, default_branch="main")
    miscounted = made.add("commit", {b"a": commit_of(b"a")}, count=2)
    with pytest.raises(CorruptTable, match="counts 2 records"):
        dump.read(made, DumpedRefs(miscounted, sound.branches, ""), default_branch="main")


def test_a_table_of_entries_is_no_dump(server):
    refs = server.dump()
    entries = "29d723647ab41e79d9886dd2d2dfdc90f214c0cfcb2821e5612c36874302bc85"
    with pytest.raises(CorruptTable, match="should be a dump"):
        dump.read(server.table, DumpedRefs(entries, refs.branches, refs.tags), default_branch="main")


def addresses_of(tables, metarange):
    """The addresses of a commit, those inside of the namespace."""
    for listed in read_metarange(Table.from_bytes(tables("meta_range", metarange), metarange)) if metarange else ():
        entries = entry_columns(Table.from_bytes(tables("range", listed.id), listed.id).read(), listed.id)
        full = whole(entries).to_pylist()
        inside = PLACE.inside(entries["address"]).to_pylist()
        for address, is_full, found in zip(entries["address"].to_pylist(), full, inside, strict=True):
            yield found if is_full else address


def fates():
    every = json.loads((ROOT / "truth.json").read_text())
    [inside] = [PLACE.inside(pa.array([one["address"] for one in every])).to_pylist()]
    return {
        fate: {at for at, one in zip(inside, every, strict=True) if one["fate"] == fate} for fate in ("held", "garbage")
    }


def held(server):
    store = LocalStore(ROOT)
    uncommitted = set(staged.addresses(store, "namespace/", server.uncommitted()).to_pylist())
    served = {one.address for branch in ("main", "dev") for one in server.listing(branch, page=25)}
    shown = set(PLACE.inside(pa.array(sorted(served))).to_pylist())
    commits = told(server).snapshot.commits.values()
    committed = {address for commit in commits for address in addresses_of(server.table, commit.metarange)}
    return uncommitted, shown - {None}, committed


def test_what_is_held_is_all_that_is_held_in_truth_and_no_garbage(server):
    truth = fates()
    assert {fate: len(found) for fate, found in truth.items()} == {"held": 57, "garbage": 7}
    uncommitted, shown, committed = held(server)
    assert uncommitted | shown | committed == truth["held"]
    assert truth["held"] - uncommitted - committed  # a byte-identical upload: listings of branches alone have it
    everything = pa.array(sorted(truth["held"] | truth["garbage"]))
    assert LAYOUT.objects(everything).all()


def test_files_of_uncommitted_objects_that_are_not_there_are_not_none(server, tmp_path):
    listed = server.uncommitted()
    with pytest.raises(Unreadable, match=r"wrote 1 files .* and 0 are there"):
        staged.addresses(LocalStore(tmp_path), "", listed)
    store = LocalStore(tmp_path)
    store.put(f"{staged.FOLDER}{listed.run_id}/uncommitted/part", [b"PAR1 and no more"])
    with pytest.raises(Unreadable, match="is not what a server writes"):
        staged.addresses(store, "", listed)


def test_a_path_that_is_no_utf8_is_read_as_it_is():
    folder = ROOT / "odd"
    tables = [Table.from_bytes(path.read_bytes(), path.name) for path in folder.iterdir() if len(path.name) == 64]
    [metarange] = [table for table in tables if table.kind == "metaranges"]
    paths = [
        decode_path(path)
        for listed in read_metarange(metarange)
        for path in entry_columns(Table.from_bytes((folder / listed.id).read_bytes(), listed.id).read())[
            "path"
        ].to_pylist()
    ]
    assert "bad\udcffutf8" in paths


def test_time_is_kept_to_the_microsecond(server):
    first = min(told(server).snapshot.commits.values(), key=lambda commit: commit.created_at)
    assert first.created_at.microsecond == 932_047  # of 932,047,702 nanoseconds
