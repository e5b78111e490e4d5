"""Which hashes are held: exactly those, whatever bits they share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.columns import buckets
from desilt.columns.buckets import WORTH_SLOTS, present

HASHES = st.one_of(
    st.integers(0, 40),  # many are asked for that are there
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**20 - 1).map(lambda high: high << 44),  # alike in their last bits
    st.sampled_from([0, 1, 2**63, 2**64 - 1]),
)


@pytest.fixture(autouse=True, params=[1, WORTH_SLOTS], ids="slots from {}".format)
def worth_slots(request):
    """Slots are used however few there are, and where they are worth it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "WORTH_SLOTS", request.param)
        yield


@given(asked=st.lists(HASHES), held=st.lists(HASHES))
def test_what_is_present_is_what_sets_say(asked, held):
    found = present(np.array(asked, np.uint64), np.array(sorted(held), np.uint64))
    assert found.tolist() == [one in set(held) for one in asked]


@pytest.mark.parametrize("shift", [0, 20, 44], ids="alike in {} bits".format)
def test_of_many_hashes_exactly_those_that_are_held_are_present(shift):
    some = np.random.default_rng(shift).integers(0, 2**20, 20_000, dtype=np.uint64) << np.uint64(shift)
    held, asked = np.sort(some[:9_000]), some[5_000:]
    assert np.array_equal(present(asked, held), np.isin(asked, held))


def test_a_hash_of_nought_is_held_only_where_somebody_holds_it():
    """It is what an empty slot might have."""
    held = np.arange(1_000, 2_000, dtype=np.uint64)
    assert not present(np.zeros(1_000, np.uint64), held).any()
    assert present(np.zeros(1_000, np.uint64), np.concatenate([np.zeros(1, np.uint64), held])).all()


def test_present_finds_the_first_the_last_and_nothing_else():
    held = np.array([3, 5, 9], np.uint64)
    assert present(np.array([0, 3, 4, 5, 9, 10], np.uint64), held).tolist() == [False, True, False, True, True, False]
    assert present(np.array([1], np.uint64), np.zeros(0, np.uint64)).tolist() == [False]
