"""What tables are like, as far as a statement could notice: two databases that agree here are interchangeable.

The order of columns, comments, and names that the database gave by itself do not count.
"""

import re


def shape(database):
    """Each table by name: its columns, keys, checks and indexes."""
    with database.read() as tx:
        return {name: describe(tx, database, name) for name in table_names(tx, database)}


def describe(tx, database, table):
    return (sqlite_table if database.url.startswith("sqlite") else postgres_table)(tx, table)


def table_names(tx, database):
    if database.url.startswith("sqlite"):
        found = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    else:
        found = "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"
    return sorted(row[0] for row in tx.rows(found))


def rows_of(database):
    """Every row of every table, by the names of its columns."""
    with database.read() as tx:
        return {name: rows_in(tx, database, name) for name in table_names(tx, database)}


def rows_in(tx, database, table):
    columns = sorted(describe(tx, database, table)["columns"])
    rows = tx.rows(f"SELECT {', '.join(columns)} FROM {table}")
    return sorted((dict(zip(columns, map(plain, row), strict=True)) for row in rows), key=repr)


def plain(value):
    return bytes(value) if isinstance(value, (bytes, memoryview)) else value


def sqlite_table(tx, table):
    columns = tx.rows(f"SELECT name, type, \"notnull\", dflt_value FROM pragma_table_info('{table}')")
    key = tx.rows(f"SELECT name FROM pragma_table_info('{table}') WHERE pk > 0 ORDER BY pk")
    (made,) = tx.one("SELECT sql FROM sqlite_master WHERE name = ?", table)
    return {
        "columns": {name: rest for name, *rest in columns},
        "key": [row[0] for row in key],
        "checks": [flat(one) for one in re.findall(r"CHECK \([^()]*\)", uncommented(made))],
        "clustered": "WITHOUT ROWID" in made,
        "indexes": sorted(sqlite_indexes(tx, table)),
    }


def sqlite_indexes(tx, table):
    for name, unique, origin in list(tx.rows(f"SELECT name, \"unique\", origin FROM pragma_index_list('{table}')")):
        (made,) = tx.one("SELECT sql FROM sqlite_master WHERE name = ?", name) or (None,)
        columns = [row[0] for row in tx.rows(f"SELECT name FROM pragma_index_info('{name}') ORDER BY seqno")]
        where = flat(uncommented(made or "").partition("WHERE")[2])
        yield name if origin == "c" else origin, bool(unique), columns, where


def postgres_table(tx, table):
    here = "table_name = ? AND table_schema = ANY (current_schemas(false))"
    columns = tx.rows(
        f"SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns WHERE {here}",
        table,
    )
    constraints = tx.rows(
        "SELECT pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid "
        "JOIN pg_namespace n ON n.oid = t.relnamespace "
        "WHERE t.relname = ? AND n.nspname = ANY (current_schemas(false))",
        table,
    )
    indexes = tx.rows(
        "SELECT i.relname, x.indisprimary OR x.indisunique, pg_get_indexdef(i.oid) FROM pg_index x "
        "JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid "
        "JOIN pg_namespace n ON n.oid = t.relnamespace "
        "WHERE t.relname = ? AND n.nspname = ANY (current_schemas(false))",
        table,
    )
    return {
        "columns": {name: rest for name, *rest in columns},
        "constraints": sorted(row[0] for row in constraints),
        "indexes": sorted(
            ("" if unique else name, unique, made.partition(" USING ")[2]) for name, unique, made in indexes
        ),
    }


def uncommented(sql):
    return re.sub(r"--[^\n]*", "", sql)


def flat(sql):
    return " ".join(sql.split())
