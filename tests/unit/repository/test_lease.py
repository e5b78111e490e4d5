"""Whose records count for a repository that is not ours."""

import uuid
from datetime import UTC, datetime

import pytest

from careless import Careless
from desilt.errors import OtherRecords, StorageFailed
from desilt.objects import open_store
from desilt.repository import lease
from desilt.repository.lease import Keeper

NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def store():
    return open_store(f"memory://{uuid.uuid4().hex}")


def keeper(records):
    tokens = set()
    return Keeper(records, f"where {records} are", 1, "run", lambda: tokens, tokens.add)


def test_of_two_who_have_records_of_their_own_the_second_is_refused(store):
    first = keeper("mine")
    lease.take(store, "", first, NOW)
    with pytest.raises(OtherRecords):
        lease.take(store, "", keeper("theirs"), NOW)
    assert lease.take(store, "", first, NOW).number == 2


def test_where_the_store_would_let_both_be_first_nobody_is(store):
    with pytest.raises(StorageFailed, match="keep two machines apart"):
        lease.take(Careless(store), "", keeper("mine"), NOW)
    assert lease.newest(store, "") is None
