"""Dumps that we write are those that a server writes."""

import pytest

from desilt.lakefs import dump, dumping
from desilt.sstable.table import Table
from desilt.sstable.wire import unpack
from lakefs_server import ROOT

TABLES = ROOT / "namespace" / "_lakefs"


def captured(kind, entity):
    for path in sorted(TABLES.iterdir()):
        if len(path.name) == 64:
            table = Table.from_bytes(path.read_bytes(), path.name)
            if (table.kind, table.properties.get("entity")) == (kind, entity.encode()):
                yield table


@pytest.mark.parametrize("entity", ["commit", "branch", "tag"])
def test_a_dump_written_again_is_the_same_files(entity):
    for table in captured("ranges", entity):
        records = table.read()
        pairs = zip(records["key"].to_pylist(), map(unpack, records["value"].to_pylist()), strict=True)
        stored = {}
        messages = {key.decode(): (identity.decode(), message) for key, (identity, message) in pairs}
        metarange = dumping.write_entity(stored.__setitem__, entity, messages)
        assert {name: (TABLES / name).read_bytes() for name in stored} == stored
        assert metarange in {one.name for one in captured("metaranges", entity)}


def written(stored):
    """The commits of a dump whose metarange was stored last."""
    return [dump._commit(one) for one in dump._messages(lambda _, name: stored[name], list(stored)[-1], "commit")]


def test_a_commit_is_written_as_a_server_writes_it():
    [metarange] = [one.name for one in captured("metaranges", "commit")]
    seen = 0
    for message in dump._messages(lambda _, name: (TABLES / name).read_bytes(), metarange, "commit"):
        commit = dump._commit(message)
        if len(commit.metadata) < 2:  # a server writes maps in any order
            stored = {}
            dumping.write_entity(stored.__setitem__, "commit", {commit.id: (commit.id, dumping.commit_message(commit))})
            assert written(stored) == [commit]
            seen += 1
    assert seen
