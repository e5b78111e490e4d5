"""What a table is asked for: refused before anything is opened, with what to write instead."""

import pytest

from desilt.errors import BadRequest
from desilt.tables.piece import AT_LEAST, grouped
from desilt.tables.request import TAKES, asked, with_schema
from desilt.tables.schemas import SCHEMAS, types_of

WHERE = {"repository": "/lake#mine"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "entries"}, "the option 'repository' is missing"),
        (WHERE, "the option 'table' is missing; the tables are entries, commits"),
        ({**WHERE, "table": "entrys"}, "there is no table 'entrys'; did you mean 'entries'?"),
        ({**WHERE, "table": "zzz"}, "there is no table 'zzz'; the tables are"),
        ({**WHERE, "table": "entries", "reff": "main"}, "no option 'reff'; did you mean 'ref'?"),
        ({**WHERE, "table": "commits", "ref": "main"}, "table 'commits' has no option 'ref'; the options are"),
        ({**WHERE, "table": "plan", "prefix": "a"}, "table 'plan' has no option 'prefix'"),
        ({**WHERE, "table": "entries", "columns": "path,siz_bytes"}, "'siz_bytes'; did you mean 'size_bytes'?"),
        ({**WHERE, "table": "entries", "columns": ""}, "no column ''; the columns are ref, commit_id"),
        ({**WHERE, "table": "entries", "columns": "path, path"}, "'path' twice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_unknown_or_missing_is_refused_with_what_to_write(options, said):
    with pytest.raises(BadRequest) as refused:
        asked(options)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "db",
    [
        "postgresql://me:secret@host/lake",
        "postgresql://host/lake?password=secret",
        "postgresql://me@host/x?sslmode=require&password=secret",
    ],
)
def test_a_password_is_no_option_and_is_not_repeated(db):
    with pytest.raises(BadRequest) as refused:
        asked({**WHERE, "table": "refs", "db": db})
    assert "PGPASSWORD" in str(refused.value)
    assert "secret" not in str(refused.value)
    assert asked({**WHERE, "table": "refs", "db": "postgresql://me@host/lake"}).db == "postgresql://me@host/lake"


def test_names_of_options_tables_and_columns_may_be_written_in_any_case():
    found = asked({"Repository": "s3://Bucket/Lake#mine", "TABLE": "Entries", "Columns": "Path, REF", "Ref": "Main"})
    assert (found.repository, found.table, found.ref) == ("s3://Bucket/Lake#mine", "entries", "Main")
    assert found.columns == ("path", "ref")


def test_a_directory_is_what_it_is_where_it_was_asked_for(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert asked({"repository": "./lake#mine", "table": "refs"}).repository == f"{tmp_path}/lake#mine"
    assert asked({"repository": "lake:///x#mine", "table": "refs"}).repository == "lake:///x#mine"


def test_every_table_has_a_schema_that_spark_can_spell():
    assert SCHEMAS.keys() == TAKES.keys()
    for table, schema in SCHEMAS.items():
        assert list(types_of(table)) == schema.names
        assert asked({**WHERE, "table": table}).columns == tuple(schema.names)


def test_a_schema_names_columns_as_they_are():
    wanted = asked({**WHERE, "table": "entries"})
    assert with_schema(wanted, [("size_bytes", "bigint"), ("path", "string")]).columns == ("size_bytes", "path")
    with pytest.raises(BadRequest, match="no column 'size_bytes' of type int; it is bigint"):
        with_schema(wanted, [("size_bytes", "int")])
    with pytest.raises(BadRequest, match="no column 'sizes' of type int; did you mean 'size_bytes'"):
        with_schema(wanted, [("sizes", "int")])


def test_pieces_have_everything_once_and_neither_one_core_nor_one_task_has_it_all():
    for count in (0, 1, 7, 100, 10_000):
        groups = grouped(range(count), lambda _: 10, 500)
        assert [one for group in groups for one in group] == list(range(count))
        assert all(0 < len(group) <= 50 for group in groups)
        assert len(groups) >= min(count, AT_LEAST * 3 // 4)
    assert grouped([5, 5_000, 5], lambda weight: weight, 100) == [[5], [5_000], [5]]
