"""Names that a lakeFS server gave, worked out again."""

import lakefs_server as server
from desilt.domain.history import Commit, new_commit
from desilt.domain.identity import commit_hash
from desilt.domain.times import EPOCH, SECOND
from desilt.sstable.wire import fields, unpack
from sstable_records import pairs_of


def answered():
    """Every commit of the server's logs: its id, its generation, and what it is named by."""
    for page in server.answers("log"):
        for one in page["results"]:
            facts = {name: one[name] for name in ("parents", "committer", "message", "metadata")}
            yield one["id"], one["generation"], {**facts, "metarange": one["meta_range_id"], "at": one["creation_date"]}


def dumped():
    """Every commit of the server's dumps, which know the commits of deleted branches too."""
    for table in server.dumped_commits():
        for _, value in pairs_of(table.read()):
            told = {
                name: [content for field, content in fields(unpack(value)[1]) if field == name] for name in range(10)
            }
            texts = {name: b"".join(told[name]).decode() for name in (1, 2, 3, 5)}
            metadata = [dict(fields(pair)) for pair in told[6]]
            yield (
                texts[1],
                told[9][0],
                {
                    "committer": texts[2],
                    "message": texts[3],
                    "at": dict(fields(told[4][0]))[1],
                    "metarange": texts[5],
                    "metadata": {pair[1].decode(): pair[2].decode() for pair in metadata},
                    "parents": [parent.decode() for parent in told[7]],
                },
            )


def test_every_commit_of_the_logs_has_the_id_that_the_server_gave_it():
    found = [(name, commit_hash(seconds=facts.pop("at"), **facts)) for name, _, facts in answered()]
    assert len(found) == 18
    assert [ours for _, ours in found] == [theirs for theirs, _ in found]


def test_every_commit_of_the_dumps_has_the_id_that_the_server_gave_it():
    found = {name: commit_hash(seconds=facts.pop("at"), **facts) for name, _, facts in dumped()}
    assert len(found) == 21
    assert list(found.values()) == list(found)


def test_every_commit_has_the_generation_that_the_server_gave_it():
    told = {name: (generation, facts) for name, generation, facts in dumped()}
    made: dict[str, Commit] = {}
    for name, (_, facts) in sorted(told.items(), key=lambda item: item[1][0]):
        at, parents = EPOCH + facts.pop("at") * SECOND, [made[parent] for parent in facts.pop("parents")]
        made[name] = new_commit(created_at=at, parents=parents, **facts)
    assert {one.id: one.generation for one in made.values()} == {name: told[name][0] for name in made}
    assert min(one.generation for one in made.values()) == 1
