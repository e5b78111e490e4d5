"""What a Spark Connect server is told in secret is not repeated in errors."""

import os
import socket
import traceback

import pytest

from desilt.errors import WorkFailed
from desilt.executors.connect import REMOTE, connect, without_secrets


@pytest.mark.parametrize("secret", [";token=c2VzYW1l==", ";token=c2VzYW1l;x", ";user_id=ann;token=c2VzYW1l=="])
def test_a_token_that_spark_cannot_read_is_not_repeated(secret):
    pytest.importorskip("grpc")
    said = r"gives no session: .*key-value pair"
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(WorkFailed, match=said) as raised:
        connect(f"sc://127.0.0.1:{server.getsockname()[1]}/{secret}")
    assert "c2VzYW1l" not in "".join(traceback.format_exception(raised.value))


def test_all_that_stands_behind_a_semicolon_is_left_out():
    url = "sc://h:1/;use_ssl=true;token=a=b"
    assert without_secrets(f"cannot open {url}: 'token=a=b'", url) == "cannot open sc://h:1/;use_ssl;token: 'token'"
    assert without_secrets("not so: sesame1", "sc://h/;token=sesame1") == "not so: ***"


def test_a_server_that_gives_no_session_leaves_the_process_as_it_was(monkeypatch):
    monkeypatch.delenv(REMOTE, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.raises(WorkFailed, match="gives no session"):
        connect(f"sc://127.0.0.1:{listening.getsockname()[1]}/;token=abc==")
    assert REMOTE not in os.environ
