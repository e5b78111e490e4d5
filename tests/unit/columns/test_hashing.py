"""The hash that files are sorted by: slow and obvious beside fast, and fixed for good."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.columns.hashing import address_hash, bucket_of

MASK = 2**64 - 1


def slow(text):
    def mix(h):
        h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        h = (h ^ (h >> 27)) * 0x94D049BB133111EB & MASK
        return h ^ (h >> 31)

    raw = text.encode()
    h = 0x9E3779B97F4A7C15 ^ len(raw)
    if len(raw) < 8:
        return mix(h ^ int.from_bytes(raw, "little"))
    for at in [*range(0, len(raw) - 8, 8), len(raw) - 8]:
        h = mix(h ^ int.from_bytes(raw[at : at + 8], "little"))
    return h


@given(st.lists(st.text(max_size=40), max_size=30))
@settings(deadline=None)
def test_the_column_agrees_with_one_at_a_time(texts):
    assert address_hash(pa.array(texts, pa.string())).tolist() == [slow(text) for text in texts]


def test_slices_and_large_strings_hash_the_same():
    texts = pa.array([f"branches/b/p/{n}" for n in range(50)])
    assert address_hash(texts.slice(10, 5)).tolist() == address_hash(texts).tolist()[10:15]
    assert address_hash(texts.cast(pa.large_string())).tolist() == address_hash(texts).tolist()


def test_the_hash_never_changes():
    """Files written by earlier versions are compared by it."""
    found = address_hash(pa.array(["", "a", "branches/d5ari0/62292844800000_d5ari0/d5ari0dei0bs72fpblu0"]))
    assert found.tolist() == [slow(""), slow("a"), slow("branches/d5ari0/62292844800000_d5ari0/d5ari0dei0bs72fpblu0")]
    assert hex(found[2]) == "0xee739728e57c20fb"


def test_buckets_are_runs_of_sorted_hashes_and_evenly_filled():
    hashes = np.sort(address_hash(pa.array([f"branches/b/p/{n:08d}" for n in range(32_000)])))
    buckets = bucket_of(hashes, 32)
    assert (np.diff(buckets) >= 0).all()
    counts = np.bincount(buckets, minlength=32)
    assert counts.min() > 850
    assert counts.max() < 1_150
    assert bucket_of(hashes, 1).max() == 0


def test_an_odd_number_of_buckets_is_refused():
    with pytest.raises(ValueError, match="power of two"):
        bucket_of(np.zeros(1, np.uint64), 24)


def test_a_missing_address_is_refused():
    with pytest.raises(ValueError, match="never null"):
        address_hash(pa.array(["a", None]))
