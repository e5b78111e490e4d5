"""The shipped servers are real, and end with whoever started them."""

import os
import signal
import subprocess
import sys

import psycopg
import pytest

from desilt.errors import StorageFailed
from desilt.objects import open_store
from desilt.testing.servers import free_ports, listens, running
from patience import until


def test_postgres_answers(postgres_url):
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("select 6 * 7").fetchone() == (42,)


def test_a_new_bucket_is_empty_and_writable(s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    store = open_store(s3_server.create_bucket("fresh"))
    assert list(store.list()) == []
    store.put("key", [b"body"])
    assert store.get("key") == b"body"


def test_a_missing_bucket_is_not_a_missing_object(s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    store = open_store("s3://never-made")
    for ask in (
        lambda: store.get("key"),
        lambda: store.head("key"),
        lambda: list(store.list()),
        lambda: store.put("key", [b"x"]),
    ):
        with pytest.raises(StorageFailed, match="there is no bucket"):
            ask()


def test_a_wrong_key_is_told_in_one_line(s3_server, monkeypatch):
    s3_server.create_bucket("locked")
    for name, value in {**s3_server.env, "AWS_SECRET_ACCESS_KEY": "wrong"}.items():
        monkeypatch.setenv(name, value)
    store = open_store("s3://locked")
    for ask in (lambda: store.get("key"), lambda: store.head("key"), lambda: list(store.list())):
        with pytest.raises(StorageFailed, match="was not allowed; check the keys") as raised:
            ask()
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "http://no-such-host.invalid"])
def test_a_server_that_is_not_there_is_told_in_one_line(monkeypatch, endpoint):
    monkeypatch.setattr("desilt.objects.buckets.RETRY", {"max_retries": 0})
    for name, value in {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(name, value)
    store = open_store("s3://bucket")
    for ask in (lambda: store.get("key"), lambda: list(store.list()), lambda: store.put("key", [b"x"])):
        with pytest.raises(StorageFailed, match=r"failed: .*; check the network") as raised:
            ask()
        assert "\n" not in str(raised.value)


def test_a_server_ends_when_its_process_is_killed(tmp_path):
    (port,) = free_ports(1)
    code = (
        "import sys, time; from pathlib import Path; from desilt.testing.servers import *\n"
        f"command = [sys.executable, '-m', 'http.server', '{port}', '--bind', '127.0.0.1']\n"
        f"with running(command, log=Path({str(tmp_path / 'log')!r}), ready=lambda: listens({port})):\n"
        "    print('up', flush=True); time.sleep(100000)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout.readline() == b"up\n"
        assert listens(port)
        os.kill(owner.pid, signal.SIGKILL)
    until(lambda: not listens(port))


def test_postgres_ends_when_its_process_is_killed(tmp_path):
    code = (
        "import sys, time; from desilt.testing.servers import postgres\n"
        "with postgres(sys.argv[1]):\n    print('up', flush=True); time.sleep(100000)"
    )
    home = tmp_path / "pg"
    with subprocess.Popen([sys.executable, "-c", code, str(home)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout.readline() == b"up\n"
        assert (home / "postmaster.pid").exists()
        os.kill(owner.pid, signal.SIGKILL)
    until(lambda: not (home / "postmaster.pid").exists())


def test_a_server_that_cannot_start_is_noticed_at_once(tmp_path):
    with (
        pytest.raises(StorageFailed, match="did not come up"),
        running(["false"], log=tmp_path / "log", ready=lambda: False),
    ):
        pass
