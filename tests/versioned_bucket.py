"""A bucket of the real S3 server that keeps versions: what lies in it, seen past desilt; and a server that is short.

bucket = VersionedBucket(server, "name")
bucket.put("key", b"one", b"two")       # two versions
bucket.versions("key")                  # ids, the newest first; markers begin with "-"
with bucket.refusing("id"): …           # that version is not removed, and the server says so
with bucket.pages(2): …                 # listings of versions come two at a time
"""

from contextlib import contextmanager
from itertools import product

from desilt.objects.s3_client import REMOVALS, s3_client


class VersionedBucket:
    """One bucket, with versioning switched on."""

    def __init__(self, server, name, status="Enabled"):
        self.uri = server.create_bucket(name)
        self.name, self.s3 = name, s3_client(name)
        if status:
            self.versioning(status)

    def versioning(self, status):
        self.s3.put_bucket_versioning(Bucket=self.name, VersioningConfiguration={"Status": status})

    def put(self, key, *bodies):
        """The ids of the versions, the oldest first."""
        return [self.s3.put_object(Bucket=self.name, Key=key, Body=body)["VersionId"] for body in bodies]

    def hide(self, key):
        """The id of a marker over ``key``."""
        return self.s3.delete_object(Bucket=self.name, Key=key)["VersionId"]

    def versions(self, prefix=""):
        """Everything there is, by key; markers begin with a dash."""
        found = {}
        for page in self.s3.get_paginator("list_object_versions").paginate(Bucket=self.name, Prefix=prefix):
            for name, sign in (("Versions", ""), ("DeleteMarkers", "-")):
                for row in page.get(name, []):
                    found.setdefault(row["Key"], set()).add(sign + row["VersionId"])
        return found

    def latest(self, key):
        """The id of the version that a read finds."""
        return self.s3.head_object(Bucket=self.name, Key=key)["VersionId"]

    @contextmanager
    def refusing(self, *ids):
        """The server leaves versions of these ids alone, and says that it was not allowed."""
        left = []

        def before(params, **_):
            rows = params["Delete"]["Objects"]
            left[:] = [row for row in rows if row.get("VersionId") in ids]
            params["Delete"] = {**params["Delete"], "Objects": [row for row in rows if row not in left]}
            if not params["Delete"]["Objects"]:
                params["Delete"]["Objects"] = [{"Key": "no-such-key", "VersionId": "no-such-version"}]

        def after(parsed, **_):
            told = {"Code": "AccessDenied", "Message": "not this one"}
            parsed["Errors"] = [{"Key": row["Key"], "VersionId": row["VersionId"], **told} for row in left]

        with self._listening({"before-parameter-build.s3.DeleteObjects": before, "after-call.s3.DeleteObjects": after}):
            yield

    @contextmanager
    def pages(self, size):
        with self.asking("ListObjectVersions", lambda params: params.update(MaxKeys=size)):
            yield

    @contextmanager
    def asking(self, call, change):
        """``change`` is made to what the server is asked by a ``call``."""
        with self._listening({f"before-parameter-build.s3.{call}": lambda params, **_: change(params)}):
            yield

    @contextmanager
    def answering(self, call, change):
        """``change`` is made to what the server answers to a ``call``."""
        with self._listening({f"after-call.s3.{call}": lambda parsed, **_: change(parsed)}):
            yield

    @contextmanager
    def _listening(self, heard):
        clients = (self.s3, s3_client(self.name, attempts=REMOVALS))
        for client, (event, hear) in product(clients, heard.items()):
            client.meta.events.register(event, hear, unique_id=event)
        try:
            yield
        finally:
            for client, (event, hear) in product(clients, heard.items()):
                client.meta.events.unregister(event, hear, unique_id=event)
