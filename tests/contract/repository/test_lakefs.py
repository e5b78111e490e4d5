"""A lakeFS server's repository keeps the contracts of Source and Gate: on a model of a server, and on one that runs.

Where ``DESILT_LAKEFS_ENDPOINT`` and the like name a server, the same is asked of that.
"""

import os

import pytest

from desilt.lakefs.opening import open_repository
from desilt.lakefs.settings import find
from desilt.records.opening import open_records
from desilt.testing.gate_contract import GateContract
from desilt.testing.source_contract import SourceContract
from lakefs_model import LakefsModel
from lakefs_subject import LakefsSubject, live, of_model


def opened(uri, db, clock):
    return open_repository(find(uri, environment=os.environ), open_records(db), clock=clock)


@pytest.fixture(params=["model", "live"])
def subject(request, new_url, tmp_path, monkeypatch):
    model = LakefsModel(tmp_path / "blocks") if request.param == "model" else None
    access = of_model(model) if model else live()
    if access is None:
        pytest.skip("no lakeFS server is named by DESILT_LAKEFS_ENDPOINT and the like")
    for name, value in access.environment.items():
        monkeypatch.setenv(name, value)
    if model:
        monkeypatch.setenv("LAKEFS_BLOCKSTORE_LOCAL_PATH", str(model.root))
    found = LakefsSubject(access, opened, new_url(), model=model)
    yield found
    found.repository.records.close()
    found.close()
    if model:
        model.close()


class TestLakefsSource(SourceContract):
    pass


class TestLakefsGate(GateContract):
    pass
