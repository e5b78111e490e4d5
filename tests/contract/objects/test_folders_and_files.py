"""Looking one level down, and reading here and there."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from desilt.objects.file import ObjectFile


def test_folders_are_what_lies_one_level_below(store):
    for key in ("a/x", "a/b/y", "b-c/z", "b/c/d", "file"):
        store.put(key, [b"1"])
    assert list(store.folders()) == ["a/", "b-c/", "b/"]
    assert list(store.folders("a/")) == ["a/b/"]
    assert list(store.folders("b/")) == ["b/c/"]
    assert list(store.folders("b/c/")) == []
    assert list(store.folders("nosuch/")) == []


def test_an_object_is_read_as_a_file(store):
    store.put("key", [b"0123456789"])
    file = ObjectFile(store, "key")
    assert (file.seek(3), file.read(4), file.tell()) == (3, b"3456", 7)
    assert file.read() == b"789"
    assert file.read(5) == b""
    assert (file.seek(-2, io.SEEK_END), file.read()) == (8, b"89")


def test_parquet_reads_one_column_of_one_row_group(store):
    table = pa.table({"a": list(range(1000)), "b": ["x" * 50] * 1000})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=100)
    store.put("table", [sink.getvalue()])
    file = pq.ParquetFile(pa.PythonFile(ObjectFile(store, "table"), mode="r"))
    assert file.read_row_group(3, columns=["a"])["a"].to_pylist() == list(range(300, 400))
