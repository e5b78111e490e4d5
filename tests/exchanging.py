"""A lake and a model of a server, side by side, and what every commit of either reads as."""

from datetime import UTC, datetime

from desilt.domain.entry import AddressType, decode_path
from desilt.exchange.exporting import export
from desilt.exchange.importing import take_in
from desilt.executors.executor import HERE, Nobody
from desilt.lake import Lake, schema
from desilt.objects import open_store
from desilt.records.database import open_database
from words import committed, reparent

START = datetime(2026, 1, 1, tzinfo=UTC)
OUTSIDE = "s3://elsewhere/a/b.parquet"


def new_lake(folder, clock, raggedness=3):
    """A lake of many small ranges."""
    folder.mkdir(exist_ok=True)
    url = f"sqlite://{folder / 'desilt.db'}"
    database = open_database(url, create=True)
    schema.create(database, storage="")
    return Lake(database, open_store(str(folder), clock=clock), clock=clock, raggedness=raggedness)


def with_a_past(lake):
    """Branches, a merge, a tag, an edited commit, a deleted branch, something staged, something elsewhere."""
    repo = lake.create_repository("mine")
    for n in range(12):
        repo.put("main", f"t/{n:02d}", b"first %d" % n, content_type="text/plain", metadata={"n": str(n), "a": "b"})
    repo.commit("main", "twelve", metadata={"by": "hand", "why": "test"})
    repo.create_branch("dev", "main")
    repo.stage("dev", "else/where", OUTSIDE, size=7, checksum="abc")
    committed(repo, "dev", "on dev", x="dev", y="dev too")
    repo.remove("main", "t/03")
    committed(repo, "main", "less", z="main")
    repo.create_tag("v1", "main")
    repo.merge("dev", "main")
    repo.create_branch("gone", "main")
    committed(repo, "gone", "nobody reaches this", lonely="yes")
    repo.delete_branch("gone")
    for path in [entry.path for entry in repo.list("dev")]:
        repo.remove("dev", path)
    repo.commit("dev", "nothing left")
    last = committed(repo, "main", "last", t2="end")
    reparent(repo, last, repo.resolve("v1").commit)
    repo.put("main", "staged", b"not committed")
    return repo


def snapshot(repo):
    return repo.source(HERE).snapshot(repo.clock())


def lake_reads(repo, commit):
    """Every entry of a commit, and its bytes; of one elsewhere, where that is."""
    found = {}
    for entry in repo.list(commit, gone=True):
        whole = entry.address_type is AddressType.FULL
        body = entry.address if whole else b"".join(repo.get(commit, entry.path))
        found[entry.path] = _facts(entry, body)
    return found


def server_reads(repository, commit):
    found = {}
    for path, entry in repository.entries(commit).items():
        whole = entry.address_type is AddressType.FULL
        found[decode_path(path)] = _facts(entry, entry.address if whole else repository.get(entry))
    return found


def _facts(entry, body):
    return entry.size, entry.checksum, entry.modified_ns, dict(entry.metadata), entry.content_type, body


def give(repo, model, name="theirs", **more):
    more = {"namespace": "", "may_miss": False, "watch": Nobody(), "clock": model.clock} | more
    return export(repo, model.settings(name), **more)


def take(model, name, lake, called="taken", **more):
    return take_in(model.settings(name), lake, called, **({"may_miss": False, "watch": Nobody()} | more))
