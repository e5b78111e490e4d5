"""Which addresses are objects, when they were named, and which whole URIs lead into the namespace."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from desilt.errors import BadRequest
from desilt.lakefs.layout import LAYOUT, partition_seconds
from desilt.lakefs.namespace import Namespace
from lakefs_server import ROOT

PARTITION, OBJECT = "fta72g1ksdu910j5r8ng", "dbt942pksdu910j5r8p0"
SIGNED = f"{OBJECT},C68tpCiZ313bPVdX4_mrYFxwRQwi4ll9Ghzl5GpgRBw"
OBJECTS = [
    f"data/{PARTITION}/{OBJECT}",
    f"data/{PARTITION}/{SIGNED}",
    f"data/!ab/c/{PARTITION}/{OBJECT}",
    f"data/!ab/c/{PARTITION}/{SIGNED}",
    "0123456789abcdef0123456789abcdef",
]
FOREIGN = [
    "",
    "dummy",
    "_lakefs/dummy",
    f"_lakefs/{'0' * 64}",
    f"_lakefs/{PARTITION}/{OBJECT}",
    f"_lakefs/retention/gc/unified/{PARTITION}/{OBJECT}",
    f"_desilt/{PARTITION}/{OBJECT}",
    f"_desilt/trash/data/{PARTITION}/{OBJECT}",
    f"data/{OBJECT}",
    f"data/{PARTITION}/",
    f"data/{PARTITION}/{OBJECT}/",
    f"data/{PARTITION}/{OBJECT}/x",
    f"data/{PARTITION}/{OBJECT}\n",
    f"data/{PARTITION}/x{OBJECT}",
    f"data/{PARTITION}/{OBJECT[:-1]}",
    f"data/{PARTITION}/{OBJECT[:-1]}1",
    f"data/{PARTITION}/{OBJECT},",
    f"data/{PARTITION}/{OBJECT},short",
    f"data/{PARTITION}/{OBJECT.upper()}",
    f"data/repo:0123/{OBJECT}",
    f"data/!abc/c/{PARTITION}/{OBJECT}",
    f"data/ab/c/{PARTITION}/{OBJECT}",
    f"data//{PARTITION}/{OBJECT}",
    f"/data/{PARTITION}/{OBJECT}",
    f"other/{PARTITION}/{OBJECT}",
    f"DATA/{PARTITION}/{OBJECT}",
    "0123456789abcdef0123456789abcdeg",
    "0123456789ABCDEF0123456789ABCDEF",
    "x/0123456789abcdef0123456789abcdef",
    f"{PARTITION}/{OBJECT}",
]


def test_objects_are_objects_and_everything_unknown_is_foreign():
    every = OBJECTS + FOREIGN
    expected = [True] * len(OBJECTS) + [False] * len(FOREIGN)
    assert LAYOUT.objects(pa.array(every)).tolist() == expected
    assert [LAYOUT.is_object(address) for address in every] == expected
    folders = pa.array([address.rpartition("/")[0] + "/" * ("/" in address) for address in every]).dictionary_encode()
    assert LAYOUT.ours(folders, pa.array([address.rpartition("/")[2] for address in every])).tolist() == expected


def test_every_object_of_the_capture_is_one_and_nothing_else_is():
    root = ROOT / "namespace"
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    ours = dict(zip(found, LAYOUT.objects(pa.array(found)).tolist(), strict=True))
    assert ours == {address: address.startswith("data/") for address in found}
    assert sum(ours.values()) == 64


def test_tables_are_tables():
    names = [f"_lakefs/{'a' * 64}", f"_lakefs/{'a' * 63}", "_lakefs/refs_manifest.json", f"data/{'a' * 64}"]
    assert LAYOUT.tables_among(pa.array(names)).tolist() == [True, False, False, False]
    assert [LAYOUT.is_table(name) for name in names] == [True, False, False, False]


def test_an_object_tells_the_second_it_was_named_in():
    """The capture was made on 2026-11-16, from 05:18:03 on."""
    [at] = {LAYOUT.named_at(address) for address in OBJECTS[:4]}
    assert at == datetime(2026, 11, 16, 5, 18, 3, tzinfo=UTC)
    second = int(at.timestamp())
    assert LAYOUT.address_seconds(pa.array(OBJECTS)).tolist() == [second] * 4 + [-1]
    assert LAYOUT.seconds(pa.array([OBJECT, SIGNED, "0" * 32, "dummy"])).tolist() == [second, second, -1, -1]


@pytest.mark.parametrize("address", [OBJECTS[4], *FOREIGN])
def test_what_tells_no_time_has_none(address):
    assert LAYOUT.named_at(address) is None


def test_folders_of_closed_partitions_are_settled_and_no_others():
    opened = datetime.fromtimestamp(partition_seconds(PARTITION), UTC)
    assert abs(opened - datetime(2026, 11, 16, 5, 18, tzinfo=UTC)) < timedelta(minutes=2)
    folder, hour, second = f"data/{PARTITION}/", timedelta(hours=1), timedelta(seconds=1)
    assert LAYOUT.settled(folder, {"data": LAYOUT.boundary(opened + hour)})
    assert not LAYOUT.settled(folder, {"data": LAYOUT.boundary(opened + hour - second)})
    assert not LAYOUT.settled(folder, {"data": LAYOUT.after(PARTITION)})
    assert not LAYOUT.settled(folder, {})
    late = {"data": LAYOUT.boundary(opened + timedelta(days=900))}
    for never in (f"data/!ab/c/{PARTITION}/", "", "data/", f"other/{PARTITION}/", "data/zzz/"):
        assert not LAYOUT.settled(never, late)


def test_all_uploads_are_of_one_group():
    assert LAYOUT.groups(pa.array([*OBJECTS])).to_pylist() == ["data"] * 4 + [""]
    assert [LAYOUT.group_of(address) for address in OBJECTS] == ["data"] * 4 + [""]
    assert LAYOUT.group_folder("data") == LAYOUT.data


@pytest.mark.parametrize("end", ["", "/"])
@pytest.mark.parametrize(
    ("place", "uris"),
    [
        (
            "s3://b/a",
            ["s3://b/a/x", "s3a://b/a/x", "s3n://b/a/x", "S3://b/a/x", "s3://b//a/x", "s3://b/a/./x", "s3://b/%61/x"],
        ),
        ("gs://b/a", ["gs://b/a/x", "gcs://b/a/x"]),
        ("local://a", ["local://a/x", "file://a/x"]),
        (
            "https://acc.blob.core.windows.net/c/a",
            [
                "https://acc.blob.core.windows.net/c/a/x",
                "https://acc.dfs.core.windows.net/c/a/x",
                "abfs://c@acc.dfs.core.windows.net/a/x",
                "abfss://c@acc.dfs.core.windows.net/a/x",
                "wasbs://c@acc.blob.core.windows.net/a/x",
                "https://acc.adls.core.windows.net/c/a/x",
                "HTTPS://Acc.Blob.core.windows.net/c/a/x",
            ],
        ),
        ("s3://b", ["s3://b/x", "s3a://b/x"]),
    ],
)
def test_every_spelling_of_an_address_inside_is_inside(place, end, uris):
    assert Namespace(place + end).inside(pa.array(uris)).to_pylist() == ["x"] * len(uris)


@pytest.mark.parametrize(
    ("place", "uri"),
    [
        ("s3://b/a", "s3://b/ab/x"),
        ("s3://b/a/", "s3://b/ab"),
        ("s3://b/a", "s3://b/a"),
        ("s3://b/a", "s3://bb/a/x"),
        ("s3://b/a", "gs://b/a/x"),
        ("s3://b/a", "s3://b/a/../c/x"),
        ("s3://b", "s3://bb/x"),
        ("https://acc.blob.core.windows.net/c/a", "https://other.blob.core.windows.net/c/a/x"),
        ("https://acc.blob.core.windows.net/c/a", "abfss://d@acc.dfs.core.windows.net/a/x"),
        ("local://a", "local://ab/x"),
    ],
)
def test_what_is_elsewhere_is_not_inside(place, uri):
    assert Namespace(place).inside(pa.array([uri, "s3://unrelated/x"])).to_pylist() == [None, None]


def test_a_local_store_may_be_known_by_its_own_path_too():
    place = Namespace("local://lake", also=("local:///var/lakefs/lake",))
    uris = ["local:///var/lakefs/lake/data/x", "local://lake/data/x", "local:///var/lakefs/lakes/data/x"]
    assert place.inside(pa.array(uris)).to_pylist() == ["data/x", "data/x", None]


@pytest.mark.parametrize("name", ["lake", "data", "deep/lake"])
@pytest.mark.parametrize("before", ["", "/var", "//var", "/var/.", "/%76ar"])
def test_a_local_store_may_write_its_directory_twice_and_in_any_way(name, before):
    place = Namespace(f"local://{name}", also=(f"local:///var/{name}",))
    address = "data/g3skk03ddti6ar2ua000/d5ari03ddti6ar2ua010"
    uris = [f"local:///var{before}/{name}/{address}", f"local:///var{before}//{name}//{address}"]
    assert place.inside(pa.array(uris)).to_pylist() == [address, address]


def test_a_namespace_is_a_uri():
    with pytest.raises(BadRequest, match="no storage namespace"):
        Namespace("lake/capture")
