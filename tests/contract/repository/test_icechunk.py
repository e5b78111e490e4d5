"""An Icechunk repository keeps the contracts of Source and Gate: in each format, in a directory and in a bucket."""

from itertools import count

import pytest

from desilt.testing.gate_contract import GateContract
from desilt.testing.source_contract import SourceContract
from icechunk_subject import IcechunkSubject, in_bucket, in_directory
from icechunk_world import FORMATS

NUMBERS = count()


@pytest.fixture(params=[(place, version) for place in ("directory", "bucket") for version in FORMATS])
def subject(request, new_url, tmp_path, monkeypatch):
    (place, version), url = request.param, new_url()
    if place == "bucket":
        if not url.startswith("sqlite"):
            pytest.skip("in a bucket it is asked with one database, which is enough")
        server = request.getfixturevalue("s3_server")
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        where = in_bucket(server, f"contract{version}-{next(NUMBERS)}")
    else:
        where = in_directory(tmp_path / "repo")
    found = IcechunkSubject(*where, version, url)
    yield found
    found.repository.records.close()


class TestIcechunkSource(SourceContract):
    pass


class TestIcechunkGate(GateContract):
    pass
