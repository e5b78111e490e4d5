"""Verdicts over hand-made rows."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from desilt.columns.buckets import groups, hashed, row_group, written
from desilt.columns.hashing import address_hash
from desilt.columns.mark import ORDER, reasons, young
from desilt.columns.schemas import MOMENT
from desilt.domain.address import partition, uid
from desilt.domain.reason import Reason
from desilt.inventory.listing import inventory_rows
from desilt.jobs.gc.kernel import addresses_of
from desilt.lake.layout import LAYOUT

BEFORE = datetime(2026, 1, 10, tzinfo=UTC)
OLD = BEFORE - timedelta(days=1)


PARTITION = f"branches/{uid(OLD, bytes(8))}/{partition(OLD, uid(OLD, bytes(8)))}"


def named(at, number=0):
    return f"{PARTITION}/{uid(at, bytes([number]) * 8)}"


def verdicts(rows, **held):
    """Reasons by address, for rows of address and store time."""
    addresses = pa.array([address for address, _ in rows], pa.string())
    times = pa.array([at for _, at in rows], MOMENT)
    table = hashed(inventory_rows(addresses, pa.array([1] * len(rows)), times), addresses)
    known = {Reason(name): np.sort(address_hash(pa.array(some, pa.string()))) for name, some in held.items()}
    found = reasons(table, known, layout=LAYOUT, before=BEFORE)
    return {address: ORDER[place].value for address, place in zip(addresses_of(table).to_pylist(), found, strict=True)}


def test_what_nobody_holds_and_every_clock_calls_old_goes():
    address = named(OLD)
    assert verdicts([(address, OLD)]) == {address: "unreferenced"}


@pytest.mark.parametrize("holder", ["committed", "staged", "ticket"])
def test_what_somebody_holds_stays(holder):
    address = named(OLD)
    assert verdicts([(address, OLD)], **{holder: [address]}) == {address: holder}


def test_an_object_that_any_clock_calls_young_stays():
    rows = {
        "both old": (named(OLD, 1), OLD),
        "young by name": (named(BEFORE, 2), OLD),
        "young by store": (named(OLD, 3), BEFORE),
        "no time at all": (named(OLD, 4), None),
        "no name, old store": (f"{PARTITION}/0123456789abcdef.partial", OLD),
        "no name, young store": (f"{PARTITION}/fedcba9876543210.partial", BEFORE),
    }
    found = verdicts(list(rows.values()))
    assert {what: found[address] for what, (address, _) in rows.items()} == {
        "both old": "unreferenced",
        "young by name": "young",
        "young by store": "young",
        "no time at all": "young",
        "no name, old store": "unreferenced",
        "no name, young store": "young",
    }


@pytest.mark.parametrize(
    "address",
    [
        "branches/file",
        f"{PARTITION}/manifest",
        f"{PARTITION}/desilt.db",
        f"{PARTITION}/{uid(OLD, bytes(8))}x",
        f"{PARTITION}/nested/{uid(OLD, bytes(8))}",
        f"branches/nested/repos/{uid(OLD, bytes(8))}/_lakefs/{'a' * 64}",
        f"{PARTITION.replace('_', '-')}/{uid(OLD, bytes(8))}",
        f"{PARTITION}/0123456789ABCDEF.partial",
    ],
)
def test_what_is_not_named_as_we_name_is_not_ours_to_remove(address):
    assert verdicts([(address, OLD)]) == {address: "foreign"}


def test_before_means_strictly_earlier():
    address = named(OLD)
    just = BEFORE - timedelta(microseconds=1)
    assert verdicts([(address, just)]) == {address: "unreferenced"}
    assert verdicts([(address, BEFORE)]) == {address: "young"}


def test_names_tell_their_second():
    moments = [datetime(1998, 1, 20, tzinfo=UTC), datetime(2105, 12, 31, tzinfo=UTC)]
    found = LAYOUT.seconds(pa.array([*(named(at).rsplit("/", 1)[1] for at in moments), "odd", "UPPER", "é23456789"]))
    assert found.tolist() == [*(int(at.timestamp()) for at in moments), -1, -1, -1]


def test_nothing_is_young_of_nothing():
    assert len(young(pa.array([], pa.string()), pa.array([], MOMENT), BEFORE, LAYOUT)) == 0


def test_a_bucketed_file_holds_every_row_in_its_own_bucket():
    import io

    import pyarrow.parquet as pq

    table = hashed(pa.table({"address": [f"branches/b/p/{n}" for n in range(5_000)]}))
    file = pq.ParquetFile(io.BytesIO(written(table.schema, groups(table, buckets=32))))
    parts = [row_group(file, number, ["hash", "address"], name="x") for number in range(32)]
    assert pa.concat_tables(parts).equals(table)
    for number, part in enumerate(parts):
        assert {value >> 59 for value in part["hash"].to_pylist()} <= {number}
