"""The addresses that a plan names, read from its own files."""

import pyarrow.parquet as pq

from desilt.objects.file import ObjectFile


def removals(repo, report):
    """Of a plan for garbage."""
    return _named(repo, report, "unreferenced")


def named(repo, report):
    """Of a plan for what expired."""
    return _named(repo, report, "expired")


def _named(repo, report, reason):
    folder = f"{repo.prefix}_desilt/runs/{report.job}/{report.run}/plan/"
    keys = [key for batch in repo.store.list(folder) for key in batch["key"].to_pylist()]
    rows = [row for key in keys for row in pq.read_table(ObjectFile(repo.store, key)).to_pylist()]
    assert all((row["verdict"], row["reason"]) == ("remove", reason) for row in rows)
    found = [row["address"] for row in rows]
    assert len(found) == len(set(found)) == report.removed.objects
    return set(found)
