"""Somebody who works on a repository of a lakeFS server, by HTTP alone: of the model, or of a server that runs.

For a server that runs, ``DESILT_LAKEFS_ENDPOINT``, ``DESILT_LAKEFS_ACCESS_KEY_ID``, ``DESILT_LAKEFS_SECRET_ACCESS_KEY``
and ``DESILT_LAKEFS_NAMESPACE`` say where it is and below which place repositories may be made: ``s3://BUCKET/PREFIX``
with the keys of the bucket in the environment, or ``local://PREFIX`` with ``LAKEFS_BLOCKSTORE_LOCAL_PATH``. Each
subject makes one of its own, and when it is closed deletes it with its files, which a server would leave.
"""

import base64
import json
import os
import re
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

import pytest

from desilt.clock import ManualClock
from lakefs_http import API, KEY, SECRET

VARIABLES = ("ENDPOINT", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "NAMESPACE")
ADDRESS = re.compile(r"(data/[^/]+/[^/]+)$")


@dataclass(frozen=True)
class Access:
    """A server, and a place in its store."""

    endpoint: str
    key: str
    secret: str
    namespace: str  # repositories are made below it

    @property
    def environment(self):
        """How desilt finds the keys."""
        return {
            "LAKECTL_SERVER_ENDPOINT_URL": self.endpoint,
            "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": self.key,
            "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": self.secret,
        }

    def ask(self, method, path, body=None, /, **query):
        """What was answered; an error if that is one."""
        status, found = self.answer(method, path, body, **query)
        if status >= 300:
            raise AssertionError(f"{method} {path}: {status} {found}")
        return found

    def answer(self, method, path, body=None, /, **query):
        """The status, and the answer's JSON or its bytes."""
        url = f"{self.endpoint}{API}{path}" + (f"?{urlencode(query)}" if query else "")
        keys = base64.b64encode(f"{self.key}:{self.secret}".encode()).decode()
        headers = {"Authorization": f"Basic {keys}", "Content-Type": "application/octet-stream"}
        if body is not None and not isinstance(body, bytes):
            body, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = urllib.request.Request(url, data=body, headers=headers, method=method)
        try:
            told = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            told = error
        with told:
            raw, kind = told.read(), told.headers.get("Content-Type", "")
        return told.status, json.loads(raw) if kind.startswith("application/json") and raw else raw


def of_model(model, namespace=""):
    """Access to a model; ``namespace`` is needed where it keeps its objects in S3."""
    return Access(model.endpoint, KEY, SECRET, namespace or "local://")


def live():
    """Access to the server that the environment names; None where it names none."""
    found = [os.environ.get(f"DESILT_LAKEFS_{name}", "") for name in VARIABLES]
    return Access(*found) if all(found) else None


class LakefsSubject:
    """A :class:`~desilt.testing.subject.Subject`.

    ``open_repository(uri, db, clock)`` gives desilt's side of it: what is at ``uri``, with its records in the database
    ``db``, and with ``clock`` for the time. The environment must have ``access.environment`` meanwhile.
    """

    shows_staged = shows_unreached = True

    def __init__(self, access, open_repository, db, *, model=None):
        self.access, self.model = access, model
        self.name = f"desilt-{uuid.uuid4().hex[:12]}"
        self.clock = ManualClock(model.clock.now if model else datetime.now(UTC))
        self._known = {}  # what was uploaded, by address
        below = access.namespace if access.namespace.endswith("://") else access.namespace.rstrip("/") + "/"
        made = {"name": self.name, "storage_namespace": below + self.name, "default_branch": "main"}
        access.ask("POST", "/repositories", made)
        try:
            self.repository = open_repository(self.uri, db, self.clock)
        except BaseException:
            access.ask("DELETE", self._at(), force="true")
            raise

    @property
    def uri(self):
        return f"lakefs+{self.access.endpoint}/{self.name}"

    def close(self):
        self.access.ask("DELETE", self._at(), force="true")
        if self.model is None:
            store = self.repository.store
            keys = [key for batch in store.list() for key in batch["key"].to_pylist()]
            store.delete_many(keys)

    def upload(self, branch, path, body):
        told = self.access.ask("POST", self._at("branches", branch, "objects"), body, path=path)
        return self._remembered(told)

    def unstage(self, branch):
        self.access.ask("PUT", self._at("branches", branch), {"type": "reset"})

    def begin_upload(self, branch, path):
        """A server keeps no list of the addresses that it hands out."""
        self.access.ask("GET", self._at("branches", branch, "staging", "backing"), path=path)

    def stage_again(self, branch, path, address):
        told = self._known[address]
        body = {name: told[name] for name in ("physical_address", "checksum", "size_bytes")}
        self.access.ask("PUT", self._at("branches", branch, "objects"), body, path=path)

    def uploaded_as(self, path):
        return path

    def commit(self, branch, message):
        return self.access.ask("POST", self._at("branches", branch, "commits"), {"message": message})["id"]

    def branch(self, name, source):
        self.access.ask("POST", self._at("branches"), {"name": name, "source": source})

    def delete_branch(self, name):
        self.access.ask("DELETE", self._at("branches", name))

    def tag(self, name, source):
        self.access.ask("POST", self._at("tags"), {"id": name, "ref": source})

    def wait(self, time):
        """A server that runs has a time of its own: only ours goes on there."""
        self.clock.now += time
        if self.model:
            self.model.wait(time)

    def now(self):
        return self.clock()

    def lose_commit(self, commit):
        return self._modelled().lose_commit(self.name, commit)

    def lose_branches(self):
        return self._modelled().lose_branches(self.name)

    def _modelled(self):
        if self.model is None:
            pytest.skip("a server that runs does not lose refs when it is asked to")
        return self.model

    def _remembered(self, told):
        address = ADDRESS.search(told["physical_address"])[1]
        self._known[address] = told
        return address

    def _at(self, *parts):
        return "/".join(["/repositories", self.name, *(quote(part, safe="") for part in parts)])
