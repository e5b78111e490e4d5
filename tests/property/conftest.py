"""Random histories write to paths that are not UTF-8 too, though no user may: a lake that was brought in has them."""

import pytest

from desilt.domain.entry import encode_path
from desilt.lake import writes


@pytest.fixture(autouse=True)
def _any_path_may_be_written_to(monkeypatch):
    monkeypatch.setattr(writes, "new_path", encode_path)
