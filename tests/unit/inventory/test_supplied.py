"""An inventory that is supplied says what a listing would, or is refused."""

import gzip
import hashlib
import json
import os
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from desilt.columns import kernel
from desilt.columns.buckets import HASH, every
from desilt.columns.files import Files, opened
from desilt.columns.hashing import address_hash
from desilt.errors import BadRequest, DamagedInventory, InvalidUri, NotFound, StaleInventory
from desilt.executors.executor import HERE
from desilt.executors.on_spark import OnSpark
from desilt.inventory import listing as inventory
from desilt.inventory import s3_rows, supplied
from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.objects import open_store
from desilt.objects.local import LocalStore
from desilt.objects.memory import MemoryStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OLD = datetime(2026, 1, 1, 8, 30, 15, 250_000, tzinfo=UTC)
DAY = timedelta(days=1)
FOLDER = "_desilt/runs/gc/x/inputs/inventory/"
CSV = ("Bucket", "Key", "VersionId", "IsLatest", "IsDeleteMarker", "Size", "LastModifiedDate", "ETag")
S3_PARQUET = "message s3.inventory {  required binary bucket (STRING);  required binary key (STRING); }"


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "lake", fsync=False)


@pytest.fixture
def given(tmp_path):
    """The folder an inventory is handed in from."""
    folder = tmp_path / "given"
    folder.mkdir()
    return folder


def read(store, uri, *, prefix="repo/", now=NOW, max_age=2 * DAY, executor=HERE):
    given = supplied.found(str(uri), store=store, now=now, max_age=max_age)
    return supplied.read(executor, given, uri=str(uri), store=store, prefix=prefix, data="branches/", folder=FOLDER)


def rows(store, listed):
    """Address, size and time of everything listed, sorted; each file as it has to be."""
    found = []
    for one in listed:
        names, total = opened(store, one.file).schema_arrow.names, 0
        for bucket in every(4):
            table = Files(store).rows(one.file, bucket, names)
            some = [folder + name for folder, name in zip(*map(column(table), ("folder", "name")), strict=True)]
            assert address_hash(pa.array(some, pa.string())).tolist() == table[HASH].to_pylist()
            found += zip(some, *map(column(table), ("size_bytes", "modified_at")), strict=True)
            total += sum(column(table)("size_bytes"))
        assert total == one.bytes
    return sorted(found)


def column(table):
    return lambda name: table[name].to_pylist()


def table_of(*objects, **more):
    """A table as S3 names its columns, of (key, size, time)."""
    keys, sizes, times = zip(*objects, strict=True)
    columns = {"bucket": ["b"] * len(keys), "key": keys, "size": pa.array(sizes, pa.int64())}
    return pa.table(columns | {"last_modified_date": pa.array(times, pa.timestamp("ms", tz="UTC"))} | more)


def write_parquet(path, *objects, at=NOW, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table_of(*objects, **more), path)
    return dated(path, at)


def write_text(path, text, at=NOW):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.name.endswith(".gz") else text.encode())
    return dated(path, at)


def dated(path, at):
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def csv_line(key, size, time, *, bucket="b", latest="true", marker="false"):
    return ",".join(f'"{one}"' for one in (bucket, key, "v1", latest, marker, size, time, "e")) + "\n"


def write_manifest(path, *files, key=None, **changes):
    """A manifest for ``files``, which it calls what ``key`` makes of them."""
    kind = "CSV" if files and files[0].name.endswith("gz") else "Parquet"
    said = {
        "sourceBucket": "b",
        "destinationBucket": "arn:aws:s3:::inventories",
        "version": "2016-11-30",
        "creationTimestamp": str(int(NOW.timestamp() * 1000)),
        "fileFormat": kind,
        "fileSchema": ", ".join(CSV) if kind == "CSV" else S3_PARQUET,
        "files": [
            {
                "key": key(file) if key else f"daily/b/config/data/{file.name}",
                "size": file.stat().st_size,
                "MD5checksum": hashlib.md5(file.read_bytes()).hexdigest(),
            }
            for file in files
        ],
    } | changes
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({name: value for name, value in said.items() if value is not None}))
    return path


A = ("repo/branches/u/p/a", 7, OLD)
ROW_A = ("branches/u/p/a", 7, OLD)


def random_lake(path):
    dice = random.Random(5)
    repo = Lake.create(locate(str(path))).create_repository("demo", clock_at=OLD)
    repo.create_branch("dev", "main")
    for _ in range(60):
        repo.set_clock(repo.clock() + timedelta(milliseconds=dice.randrange(1, 10_000_000)))
        repo.put(dice.choice(["main", "dev"]), f"file {dice.randrange(40)}", dice.randbytes(dice.randrange(50)))
    for name in ("branches/a", "branches/zzz/b c+d%41", "branches/é/ü/%", "branches/0/c/d", "branchesnot/x", "other"):
        repo.store.put(repo.prefix + name, [b"x"])
    return repo


@pytest.mark.parametrize("form", ["parquet", "csv", "manifest-parquet", "manifest-csv", "manifest-orc"])
@pytest.mark.parametrize("most", [7, 500_000])
def test_what_a_store_lists_and_what_is_supplied_are_the_same(tmp_path, given, monkeypatch, form, most):
    monkeypatch.setattr(supplied, "PART_ROWS", most)
    monkeypatch.setattr(s3_rows, "BATCH_ROWS", 10)
    repo = random_lake(tmp_path / "lake")
    listing = pa.Table.from_batches(repo.store.list()).rename_columns(["Key", "Size", "LastModifiedDate"])
    halves = [listing.slice(0, 33), listing.slice(33)]
    if form == "parquet":
        for number, half in enumerate(halves):
            pq.write_table(half, given / f"{number}.parquet", row_group_size=9)
    elif form == "csv":
        for number, half in enumerate(halves):
            times = pa.array([time.isoformat() for time in half["LastModifiedDate"].to_pylist()])
            pcsv.write_csv(half.set_column(2, "modified_at", times), given / f"{number}.csv")
    elif form == "manifest-csv":
        files = []
        for number, half in enumerate(halves):
            lines = [
                csv_line(quote_plus(key, safe="/"), size, time.isoformat().replace("+00:00", "Z"))
                for key, size, time in zip(*half.to_pydict().values(), strict=True)
            ]
            files.append(write_text(given / f"data/{number}.csv.gz", "".join(lines)))
        write_manifest(given / "manifest.json", *files)
    else:
        small, writer = form.removeprefix("manifest-"), orc.write_table if "orc" in form else pq.write_table
        files = [given / f"data/{number}.{small}" for number in (0, 1)]
        (given / "data").mkdir()
        for half, file in zip(halves, files, strict=True):
            writer(half.rename_columns(["key", "size", "last_modified_date"]), str(file))
        write_manifest(given / "manifest.json", *files, fileFormat={"orc": "ORC", "parquet": "Parquet"}[small])
    now = datetime.now(UTC)
    found = read(repo.store, given, prefix=repo.prefix, now=now, max_age=now - OLD)
    taken = inventory.take(HERE, repo.store, repo.prefix, "_desilt/runs/gc/y/", data="branches/", about=len).listed
    assert rows(repo.store, found.listed) == rows(repo.store, taken)
    assert inventory.total(found.listed) == inventory.total(taken)
    assert inventory.total(found.listed)[0] + found.outside == listing.num_rows
    assert found.outside >= 2
    assert found.noncurrent == 0
    assert {one.file.rows <= most for one in found.listed} == {True}
    assert {one.file.key.startswith(f"{repo.prefix}{FOLDER}part-") for one in found.listed} == {True}


@pytest.mark.parametrize("names", ["Key,Size,LastModifiedDate", "key,size,last_modified", "KEY,SIZE,Modified_At"])
def test_columns_are_found_by_any_of_their_names(store, given, names):
    file = write_text(given / "one.csv", f"{names},more\n{A[0]},7,2026-01-01T08:30:15.250Z,x\n")
    assert rows(store, read(store, file).listed) == [ROW_A]


@pytest.mark.parametrize("names", ["key,size", "key,modified_at", "size,modified_at", "a,b,c"])
def test_a_file_without_a_column_it_needs_is_refused(store, given, names):
    with pytest.raises(BadRequest, match="has no column"):
        read(store, write_text(given / "one.csv", names + "\n" + ",".join("1" * len(names.split(","))) + "\n"))
    with pytest.raises(BadRequest, match="has no column"):
        read(store, write_manifest(given / "manifest.json", write_text(given / "x.csv.gz", "1\n"), fileSchema="Key"))


def test_two_columns_for_the_same_are_refused(store, given):
    with pytest.raises(BadRequest, match="two columns for last_modified_date"):
        read(store, write_text(given / "one.csv", "key,size,last_modified,modified_at\n"))


def test_keys_are_decoded_only_where_s3_encodes_them(store, given):
    plain = write_parquet(given / "plain.parquet", ("repo/branches/a+b%20c", 1, OLD))
    header = write_text(given / "one.csv", "key,size,modified_at\nrepo/branches/a+b%20c,1,2026-01-01T08:30:15.25Z\n")
    encoded = "repo/branches/a+b%20c%2Bd%25e%C3%A9", "repo%2Fbranches%2Fx"
    lines = "".join(csv_line(key, 1, "2026-01-01T08:30:15.250Z") for key in encoded)
    manifest = write_manifest(given / "m/manifest.json", write_text(given / "m/data/x.csv.gz", lines))
    assert rows(store, read(store, plain).listed) == [("branches/a+b%20c", 1, OLD)]
    assert rows(store, read(store, header).listed) == [("branches/a+b%20c", 1, OLD)]
    assert rows(store, read(store, manifest).listed) == [("branches/a b c+d%eé", 1, OLD), ("branches/x", 1, OLD)]


def test_a_key_that_decodes_to_no_text_is_refused(store, given):
    file = write_text(given / "data/x.csv.gz", csv_line("repo/branches/%ff", 1, "2026-01-01T08:30:15Z"))
    with pytest.raises(DamagedInventory, match=r"x\.csv\.gz"):
        read(store, write_manifest(given / "manifest.json", file))


def test_only_the_latest_version_counts_and_no_delete_marker(store, given):
    versions = [("true", "false"), ("false", "false"), ("true", "true"), ("false", "true"), ("", "false"), ("True", "")]
    lines = [
        csv_line(
            f"repo/branches/{n}", "" if marker == "true" else 1, "2026-01-01T08:30:15.250Z", latest=a, marker=marker
        )
        for n, (a, marker) in enumerate(versions)
    ] + [csv_line("elsewhere/x", 1, "2026-01-01T08:30:15Z", latest="false")]
    manifest = write_manifest(given / "manifest.json", write_text(given / "data/x.csv.gz", "".join(lines)))
    flags = {"is_latest": [True, False, True, None], "is_delete_marker": [False, False, True, False]}
    same = [(f"repo/branches/{n}", None if n == 2 else 1, OLD) for n in range(4)]
    parquet = write_parquet(given / "one.parquet", *same, **flags)
    for uri, others in ((manifest, 6), (parquet, 3)):
        found = read(store, uri)
        assert rows(store, found.listed) == [("branches/0", 1, OLD)]
        assert (found.outside, found.noncurrent) == (0, others)


def test_a_version_flag_that_is_neither_is_refused(store, given):
    file = write_text(given / "data/x.csv.gz", csv_line(A[0], 1, "2026-01-01T08:30:15Z", latest="yes"))
    with pytest.raises(DamagedInventory, match="is_latest is neither"):
        read(store, write_manifest(given / "manifest.json", file))


def test_what_is_not_below_the_data_folder_is_counted_and_left_out(store, given):
    others = ["branches/u/p/a", "repo/_desilt/x", "repo/branches", "repository/branches/x", "x/repo/branches/y"]
    found = read(store, write_parquet(given / "one.parquet", A, *((key, 1, OLD) for key in others)))
    assert rows(store, found.listed) == [ROW_A]
    assert found.outside == len(others)


def test_an_inventory_of_nothing_of_ours_lists_nothing(store, given):
    found = read(store, write_parquet(given / "one.parquet", ("x", 1, OLD)))
    assert (found.listed, found.outside) == ([], 1)


class Elsewhere(MemoryStore):
    """As if in a bucket."""

    def __init__(self, uri):
        super().__init__("elsewhere")
        self.uri = uri


@pytest.fixture
def bucket(monkeypatch):
    store = Elsewhere("s3://b/some/prefix")
    for module in (supplied, kernel):
        monkeypatch.setattr(module, "open_store", lambda _: store)
    return store


def test_keys_of_a_bucket_lose_the_root_of_the_store(bucket, given):
    keys = ["some/prefix/repo/branches/x", "repo/branches/y", "some/prefix2/repo/branches/z", "some/prefix/repo/w"]
    found = read(bucket, write_parquet(given / "one.parquet", *((key, 1, OLD) for key in keys)))
    assert rows(bucket, found.listed) == [("branches/x", 1, OLD)]
    assert found.outside == 3


@pytest.mark.parametrize("other", ["c", "", None])
def test_an_inventory_of_another_bucket_is_refused(bucket, given, other):
    key = "some/prefix/repo/branches/x"
    two = [(key, 1, OLD), (key + "x", 1, OLD)]
    with pytest.raises(BadRequest, match=rf"{other!r}.*'b'"):
        read(bucket, write_parquet(given / "one.parquet", *two, bucket=["b", other]))
    file = write_parquet(given / "data/two.parquet", *two)
    with pytest.raises(BadRequest, match=r"'c'.*'b'"):
        read(bucket, write_manifest(given / "manifest.json", file, sourceBucket="c"))


def test_buckets_do_not_matter_to_a_directory(store, given):
    file = write_parquet(given / "data/two.parquet", A, bucket=["any"])
    assert rows(store, read(store, write_manifest(given / "manifest.json", file)).listed) == [ROW_A]


TIMES = {
    "2026-01-01T08:30:15.250Z": OLD,
    "2026-01-01 09:30:15.25+01:00": OLD,
    "2026-01-01T08:30:15.2500001Z": OLD,
    "2026-01-01T08:30:15.250": None,  # in which zone?
    "2026-13-01T08:30:15Z": None,
    "2026-01-01": None,
    "yesterday": None,
    "": None,
    "0": None,
    "1970-01-01T00:00:00Z": None,
    "0001-01-01T00:00:00Z": None,
}


@pytest.mark.parametrize("at_once", [True, False])
def test_a_time_that_cannot_be_read_is_none(store, given, at_once):
    cases = [TIMES] if at_once else [{said: meant} for said, meant in TIMES.items()]
    for case in cases:
        lines = [f"repo/branches/{n:02},1,{said}\n" for n, said in enumerate(case)]
        found = read(store, write_text(given / "one.csv", "key,size,last_modified_date\n" + "".join(lines)))
        assert [time for _, _, time in rows(store, found.listed)] == list(case.values())


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ms", tz="Asia/Tokyo")])
def test_timestamps_of_any_kind_are_moments(store, given, kind):
    utc = pa.array([OLD, None, datetime(1970, 1, 1, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    times = utc.cast(kind if kind.tz else pa.timestamp(kind.unit, tz="UTC")).cast(kind)
    three = [(f"repo/branches/{n}", 1, OLD) for n in range(3)]
    found = read(store, write_parquet(given / "one.parquet", *three, last_modified_date=times))
    assert [time for _, _, time in rows(store, found.listed)] == [OLD, None, None]


def test_a_nanosecond_too_many_makes_an_object_younger_never_older(store, given):
    exact = pa.array([OLD], pa.timestamp("ns", tz="UTC")).cast(pa.int64()).to_pylist()[0]
    times = pa.array([exact + 1], pa.timestamp("ns", tz="UTC"))
    found = read(store, write_parquet(given / "one.parquet", A, last_modified_date=times))
    assert rows(store, found.listed) == [("branches/u/p/a", 7, OLD + timedelta(microseconds=1))]


def test_numbers_are_no_times(store, given):
    with pytest.raises(BadRequest, match="times of type int64"):
        read(store, write_parquet(given / "one.parquet", A, last_modified_date=pa.array([1])))


@pytest.mark.parametrize("size", ["", "-1", "1.5", "many", "99999999999999999999"])
def test_a_size_that_cannot_be_is_refused(store, given, size):
    with pytest.raises(DamagedInventory, match=r"one\.csv"):
        read(store, write_text(given / "one.csv", f"key,size,modified_at\n{A[0]},{size},\n"))


@pytest.mark.parametrize("size", [None, -1])
def test_a_size_that_cannot_be_is_refused_in_parquet(store, given, size):
    with pytest.raises(DamagedInventory, match=r"one\.parquet"):
        read(store, write_parquet(given / "one.parquet", A, ("repo/branches/b", size, OLD)))


@pytest.mark.parametrize("key", ["", None])
def test_a_row_without_a_key_is_refused(store, given, key):
    with pytest.raises(DamagedInventory, match=r"one.parquet .*row without a key"):
        read(store, write_parquet(given / "one.parquet", A, (key, 1, OLD)))
    with pytest.raises(DamagedInventory, match=r"one\.csv"):
        read(store, write_text(given / "one.csv", "key,size,modified_at\n,1,\n"))


@pytest.mark.parametrize("most", [1, 500_000])
def test_an_object_listed_twice_is_refused(store, given, monkeypatch, most):
    monkeypatch.setattr(supplied, "PART_ROWS", most)
    others = [(f"repo/branches/{n}", 1, OLD) for n in range(20)]
    with pytest.raises(DamagedInventory, match=r"branches/u/p/a is listed twice"):
        read(store, write_parquet(given / "one.parquet", A, *others, (A[0], 8, NOW)))
    write_parquet(given / "two/one.parquet", A, *others)
    write_parquet(given / "two/two.parquet", A)
    with pytest.raises(DamagedInventory, match=r"branches/u/p/a is listed twice"):
        read(store, given / "two")


def test_a_shared_hash_is_not_the_same_object(store, given, monkeypatch):
    real = supplied.hashed

    def colliding(table, addresses):
        return real(table, addresses).set_column(0, HASH, pa.array([5] * table.num_rows, pa.uint64()))

    monkeypatch.setattr(supplied, "hashed", colliding)
    found = read(store, write_parquet(given / "one.parquet", A, ("repo/branches/b", 1, OLD)))
    assert inventory.total(found.listed) == (2, 8)


def test_an_inventory_has_the_age_of_its_manifest_or_of_its_oldest_file(store, given):
    old = NOW - DAY
    two = write_parquet(given / "two.parquet", ("repo/branches/b", 1, OLD))
    one = write_parquet(given / "one.parquet", A, at=old)
    assert read(store, given).taken_at == old
    assert read(store, two).taken_at == NOW
    other = write_manifest(given / "m/manifest.json", one, creationTimestamp=str(int(old.timestamp() * 1000) + 5))
    (given / "m/one.parquet").write_bytes(one.read_bytes())
    assert read(store, other).taken_at == old + timedelta(milliseconds=5)


def test_an_inventory_too_old_or_from_the_future_is_refused(store, given):
    file, least = write_parquet(given / "one.parquet", A), timedelta(microseconds=1)
    assert read(store, file, now=NOW + DAY, max_age=DAY).taken_at == NOW
    with pytest.raises(StaleInventory) as stale:
        read(store, file, now=NOW + DAY + least, max_age=DAY)
    assert (stale.value.uri, stale.value.age, stale.value.limit) == (str(file), DAY + least, DAY)
    ahead = timedelta(minutes=10)
    assert read(store, file, now=NOW - ahead).taken_at == NOW
    with pytest.raises(BadRequest, match="ahead"):
        read(store, file, now=NOW - ahead - least)


@pytest.mark.parametrize(
    ("manifest", "data"),
    [
        ("daily/b/config/2026-03-01T00-00Z/manifest.json", "daily/b/config/data/x.parquet"),  # as S3 puts it
        ("config/2026-03-01T00-00Z/manifest.json", "config/data/x.parquet"),  # a copy of a part
        ("manifest.json", "data/x.parquet"),
        ("manifest.json", "x.parquet"),
        ("manifest.json", "config/data/x.parquet"),
        ("deep/er/manifest.json", "deep/er/data/x.parquet"),
        ("deep/er/manifest.json", "deep/er/daily/b/config/data/x.parquet"),
    ],
)
@pytest.mark.parametrize("where", ["disk", "memory"])
def test_files_are_found_where_s3_or_a_copy_put_them(store, given, manifest, data, where):
    file = write_parquet(given / data, A)
    path = write_manifest(given / manifest, file)
    uri = path.as_uri() if where == "disk" else f"memory://{given.parent.name}{given.parent.parent.name}/{manifest}"
    if where == "memory":
        there = open_store(uri.removesuffix(f"/{manifest}"))
        there.put(manifest, [path.read_bytes()])
        there.put(data, [file.read_bytes()])
    assert rows(store, read(store, uri).listed) == [ROW_A]
    assert rows(store, read(store, uri.rpartition("/")[0] + "/").listed) == [ROW_A]


def test_the_bucket_comes_before_what_lies_nearby(store, given):
    """An old copy beside the manifest does not hide the real file."""
    file = write_parquet(given / "daily/b/config/data/x.parquet", A)
    manifest = write_manifest(given / "daily/b/config/today/manifest.json", file)
    write_parquet(given / "daily/b/config/today/data/x.parquet", ("repo/branches/b", 1, OLD))
    assert rows(store, read(store, manifest).listed) == [ROW_A]


@pytest.mark.parametrize("damage", ["missing", "longer", "other bytes"])
def test_a_file_that_is_not_what_its_manifest_says_is_refused(store, given, damage):
    one = write_parquet(given / "data/one.parquet", A)
    two = write_text(given / "data/two.csv", "key,size,modified_at\n")
    whole = two.read_bytes()
    changes = {"missing": None, "longer": whole + b"\n", "other bytes": whole.replace(b"key", b"Key")}
    two.rename(given / "data/two.parquet")
    manifest = write_manifest(given / "manifest.json", one, given / "data/two.parquet")
    (given / "data/two.parquet").unlink()
    if changes[damage] is not None:
        (given / "data/two.parquet").write_bytes(changes[damage])
    reason = {"missing": "is missing", "longer": "22 bytes, its manifest says 21", "other bytes": "its MD5 is"}[damage]
    with pytest.raises(DamagedInventory, match=rf"daily/b/config/data/two.parquet .*{reason}"):
        read(store, manifest)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"version": "2027-01-01"}, BadRequest),
        ({"version": None}, DamagedInventory),
        ({"fileFormat": "Avro"}, BadRequest),
        ({"fileFormat": "CSV"}, BadRequest),  # of files that are none
        ({"creationTimestamp": "today"}, DamagedInventory),
        ({"creationTimestamp": None}, DamagedInventory),
        ({"creationTimestamp": "9" * 30}, DamagedInventory),
        ({"fileSchema": None}, DamagedInventory),
        ({"sourceBucket": None}, DamagedInventory),
        ({"files": None}, DamagedInventory),
        ({"files": [{"key": "data/x.parquet", "size": 1}]}, DamagedInventory),
        ({"files": ["data/x.parquet"]}, DamagedInventory),
        ({"files": [{"key": "../x.parquet", "size": 1, "MD5checksum": "x"}]}, BadRequest),
    ],
)
def test_a_manifest_that_is_not_understood_is_refused(store, given, changes, error):
    file = write_parquet(given / "data/x.parquet", A)
    with pytest.raises(error, match=r"manifest\.json"):
        read(store, write_manifest(given / "manifest.json", file, **changes))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"x"', "\udcff"])
def test_a_manifest_that_is_none_is_refused(store, given, text):
    (given / "manifest.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DamagedInventory, match=r"manifest\.json"):
        read(store, given / "manifest.json")


def test_a_folder_is_all_the_files_directly_in_it(store, given):
    write_parquet(given / "x.parquet/part-0.snappy.parquet", A)
    write_text(given / "x.parquet/part-1.csv.gz", "key,size,modified_at\nrepo/branches/b,2,2026-01-01T08:30:15.25Z\n")
    for ignored in ("_SUCCESS", ".part-0.parquet.crc", "deeper/y.parquet"):
        write_text(given / "x.parquet" / ignored, "x", at=OLD)
    found = read(store, given / "x.parquet")
    assert rows(store, found.listed) == [("branches/b", 2, OLD), ROW_A]
    assert found.taken_at == NOW


@pytest.mark.parametrize("name", ["notes.txt", "x.csv.zst", "symlink"])
def test_a_file_of_unknown_kind_is_refused(store, given, name):
    write_parquet(given / "one.parquet", A)
    write_text(given / name, "x")
    for uri in (given, given / name):
        with pytest.raises(BadRequest, match=name):
            read(store, uri)


def test_nothing_there_is_not_an_empty_inventory(store, given):
    for uri in (given, given / "none", given / "none.parquet", "memory://nothing-here/x"):
        with pytest.raises(NotFound, match="inventory"):
            read(store, uri)
    for uri in ("", "ftp://x/y.parquet", "file://host/x"):
        with pytest.raises(InvalidUri):
            read(store, uri)


def test_orc_is_refused_where_pyarrow_cannot_read_it(store, given, monkeypatch):
    orc.write_table(table_of(A), str(given / "one.orc"))
    assert rows(store, read(store, dated(given / "one.orc", NOW)).listed) == [ROW_A]
    monkeypatch.setitem(sys.modules, "pyarrow.orc", None)
    with pytest.raises(BadRequest, match=r"one\.orc.*reads no ORC"):
        read(store, given / "one.orc")


def test_a_link_to_an_inventory_is_followed(store, given):
    write_parquet(given / "one.parquet", A)
    (given.parent / "link.parquet").symlink_to(given / "one.parquet")
    assert rows(store, read(store, given.parent / "link.parquet").listed) == [ROW_A]


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_a_file_cut_short_is_refused(store, given, cut):
    lines = "".join(f"repo/branches/{n},1,2026-01-01T08:30:15Z\n" for n in range(1000))
    zipped = write_text(given / "one.csv.gz", "key,size,modified_at\n" + lines)
    parquet = write_parquet(given / "one.parquet", A)
    for file in (zipped, parquet):
        file.write_bytes(file.read_bytes()[:-cut])
        with pytest.raises(DamagedInventory, match=file.name):
            read(store, dated(file, NOW))


@pytest.mark.parametrize("text", ["", "key,size,modified_at\na,1\n", "key,size,modified_at\na,1,2,3\n"])
def test_a_csv_file_of_another_shape_is_refused(store, given, text):
    with pytest.raises(DamagedInventory, match=r"one\.csv"):
        read(store, write_text(given / "one.csv", text))


def test_a_quoted_comma_or_line_end_is_part_of_a_key(store, given, monkeypatch):
    monkeypatch.setattr(s3_rows, "BLOCK_BYTES", 64)
    lines = "".join(f'"repo/branches/{n:02},\n""x""",1,2026-01-01T08:30:15.25Z\n' for n in range(50))
    found = read(store, write_text(given / "one.csv", "key,size,modified_at\n" + lines))
    assert rows(store, found.listed) == [(f'branches/{n:02},\n"x"', 1, OLD) for n in range(50)]


def test_parts_are_full_but_for_the_last_of_each_file(store, given, monkeypatch):
    monkeypatch.setattr(supplied, "PART_ROWS", 10)
    monkeypatch.setattr(s3_rows, "BATCH_ROWS", 7)
    write_parquet(given / "one.parquet", *((f"repo/branches/{n}", 1, OLD) for n in range(30)))
    write_parquet(given / "two.parquet", *((f"repo/branches/x{n}", 1, OLD) for n in range(12)))
    assert [one.file.rows for one in read(store, given).listed] == [10, 10, 10, 10, 2]


def test_nothing_is_left_on_the_executors_disk(store, given, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    read(store, write_parquet(given / "one.parquet", A))
    with pytest.raises(DamagedInventory):
        read(store, write_text(given / "bad.parquet", "PAR1"))
    assert list(Path(tmp_path / "tmp").iterdir()) == []


def test_on_spark_the_same_is_found_and_the_same_refused(store, given, spark):
    write_parquet(given / "one.parquet", A, ("elsewhere", 1, OLD))
    write_parquet(given / "two.parquet", ("repo/branches/b", 1, OLD))
    found = read(store, given, executor=OnSpark(spark))
    assert found == read(store, given)
    assert (len(rows(store, found.listed)), found.outside) == (2, 1)
    write_parquet(given / "two.parquet", ("repo/branches/b", -1, OLD))
    with pytest.raises(DamagedInventory, match=r"two.parquet .*negative"):
        read(store, given, executor=OnSpark(spark))
    write_text(given / "two.csv", "a,b\n")
    write_parquet(given / "two.parquet", ("repo/branches/b", 1, OLD))
    with pytest.raises(BadRequest, match=r"two.csv has no column"):
        read(store, given, executor=OnSpark(spark))


def test_from_bucket_to_bucket(given, s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    lake, there = s3_server.create_bucket("handed-in"), s3_server.create_bucket("handed-in-inventories")
    store, inventories = open_store(f"{lake}/some/prefix"), open_store(there)
    objects = [(f"some/prefix/repo/branches/u/p/{n}", n, OLD) for n in range(5)]
    file = write_parquet(given / "x.parquet", *objects, bucket=["handed-in"] * 5)
    manifest = write_manifest(given / "manifest.json", file, sourceBucket="handed-in")
    inventories.put("daily/b/config/data/x.parquet", [file.read_bytes()])
    inventories.put("daily/b/config/today/manifest.json", [manifest.read_bytes()])
    for uri in (f"{there}/daily/b/config/today/manifest.json", f"{there}/daily/b/config/today"):
        assert rows(store, read(store, uri).listed) == [(f"branches/u/p/{n}", n, OLD) for n in range(5)]
