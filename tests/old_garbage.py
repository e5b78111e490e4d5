"""A repository in a bucket, its database in PostgreSQL, with objects of all three kinds, all of them old."""

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg

from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.testing import oracle

START = datetime(2026, 1, 1, tzinfo=UTC)
GARBAGE, STAGED, COMMITTED = 60, 15, 15
PASSWORD = "sesame-open-thyself"  # PostgreSQL here asks for none; whoever shows it is found out by it


class OldGarbage:
    def __init__(self, repo, bucket, url):
        self.repo, self._url = repo, url
        assert "postgres:@" in url
        self.words = [f"{bucket}/lake#big", "--db", url.replace("postgres:@", f"postgres:{PASSWORD}@")]

    def gc_run(self, *words):
        """What a command is told that removes it."""
        return ["gc", "run", *self.words, "--confirm", "--max-share", "100%", "--json", *words]

    def went(self, answer):
        """That every object of the garbage went, once, and nothing else; the report that says so."""
        code, out, err = answer
        assert code == 0, err
        report = json.loads(out)
        counts = report["swept"]
        assert (counts["asked"], counts["removed"], counts["gone"], counts["failed"]) == (GARBAGE, GARBAGE, 0, 0)
        assert counts["held_again"] == 0
        held = {entry.address for branch in ("main", "scratch") for entry in self.repo.list(branch)}
        assert len(held) == COMMITTED + STAGED
        assert set(oracle.stored(self.repo)) == held
        with psycopg.connect(self._url) as connection:
            removed = "SELECT count(*), count(DISTINCT address), min(state), max(state) FROM tombstones"
            assert connection.execute(removed).fetchone() == (GARBAGE, GARBAGE, "removed", "removed")
            batches = "SELECT count(*), sum(asked), sum(removed), min(file) <> '' FROM batches"
            pieces, *rest = connection.execute(batches).fetchone()
        assert pieces > 8  # there was something to divide
        assert rest == [GARBAGE, GARBAGE, True]
        return report


@contextmanager
def old_garbage(bucket, url):
    lake = Lake.create(locate(f"{bucket}/lake", db=url))
    repo = lake.create_repository("big", clock_at=START)
    repo.create_branch("scratch", "main")
    for number in range(COMMITTED):
        repo.put("main", f"tables/{number}", b"committed")
    repo.commit("main", "tables")
    for number in range(GARBAGE):
        repo.put("scratch", f"tmp/{number}", b"garbage")
    repo.reset("scratch")
    for number in range(STAGED):
        repo.put("scratch", f"kept/{number}", b"staged")
    repo.set_clock(START + timedelta(days=3))
    yield OldGarbage(repo, bucket, url)
    lake.close()
