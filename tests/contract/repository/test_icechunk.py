"""An Icechunk repository keeps the contracts of Source and Gate, in each format that its library writes here."""

import pytest

from desilt.testing.gate_contract import GateContract
from desilt.testing.source_contract import SourceContract
from icechunk_subject import IcechunkSubject
from icechunk_world import FORMATS


@pytest.fixture(params=FORMATS)
def subject(request, new_url, tmp_path):
    found = IcechunkSubject(tmp_path / "repo", request.param, new_url())
    yield found
    found.repository.records.close()


class TestIcechunkSource(SourceContract):
    pass


class TestIcechunkGate(GateContract):
    pass
