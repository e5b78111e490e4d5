"""Every store the contract holds for: an empty one for each test, opened by its URI."""

import base64
import hashlib
import hmac
import os
import shutil
import tempfile
import urllib.request
import uuid
from email.utils import formatdate
from pathlib import Path

import pytest

from desilt.objects import open_store
from desilt.testing.servers import free_ports, listens, running
from disks import DISK

AZURITE = "devstoreaccount1"
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # the same for all
)


@pytest.fixture
def tmp_path():
    """On a disk: that is where a store in a directory must keep what it promises."""
    with tempfile.TemporaryDirectory(dir=DISK) as made:
        yield Path(made)


@pytest.fixture(params=["local", "memory", "s3", "azure"])
def uri(request, tmp_path, monkeypatch):
    """The URI of a root that holds nothing yet, with its environment set."""
    if request.param == "local":
        return tmp_path.as_uri()
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}"
    bucket, env = request.getfixturevalue(f"{request.param}_bucket")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return f"{bucket}/{uuid.uuid4().hex}"


@pytest.fixture
def store(uri):
    return open_store(uri)


@pytest.fixture(scope="session")
def s3_bucket(s3_server):
    return s3_server.create_bucket("contract"), s3_server.env


@pytest.fixture(scope="session")
def azure_bucket(tmp_path_factory):
    """Azurite, Microsoft's emulator, where it is installed."""
    command = os.environ.get("DESILT_AZURITE") or shutil.which("azurite-blob")
    if command is None:
        pytest.skip("no azurite-blob on the PATH and none named by DESILT_AZURITE; npm install -g azurite")
    home, (port,) = tmp_path_factory.mktemp("azurite"), free_ports(1)
    url = f"http://127.0.0.1:{port}/{AZURITE}"
    options = ["--blobPort", str(port), "--location", str(home), "--silent", "--disableTelemetry"]
    with running([command, *options, "--skipApiVersionCheck"], log=home / "log", ready=lambda: listens(port)):
        create_container(url, "contract")
        yield (
            "az://contract",
            {
                "AZURE_STORAGE_ACCOUNT_NAME": AZURITE,
                "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY,
                "AZURE_STORAGE_ENDPOINT": url,
            },
        )


def create_container(url, name):
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
    resource = f"/{AZURITE}/{AZURITE}/{name}\nrestype:container"
    signed = "PUT" + "\n" * 12 + "".join(f"{key}:{value}\n" for key, value in headers.items()) + resource
    digest = hmac.digest(base64.b64decode(AZURITE_KEY), signed.encode(), hashlib.sha256)
    headers["Authorization"] = f"SharedKey {AZURITE}:{base64.b64encode(digest).decode()}"
    headers["Content-Length"] = "0"
    urllib.request.urlopen(
        urllib.request.Request(f"{url}/{name}?restype=container", method="PUT", headers=headers)
    ).close()
