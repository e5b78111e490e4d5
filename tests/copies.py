"""A database copied row by row, and put back: a backup, on any database."""

import re

import pytest

from desilt.lake import journal, schema

NAMES = [match[1] for table in schema.LAKE.tables if (match := re.match(r"CREATE TABLE (\w+)", table))]
OF_REFS = ("commits", "collected", "branches", "tags", "holds", "policies", "move_marks")
"""What a journal brings back."""


def backup(database):
    """Every row of every table."""
    with database.read() as tx:
        return {name: tx.rows(f"SELECT * FROM {name}") for name in NAMES}


def put_back(database, rows):
    """The database as it was."""
    with database.write() as tx:
        for name, found in rows.items():
            tx.execute(f"DELETE FROM {name}")
            if found:
                marks = ", ".join("?" * len(found[0]))
                tx.execute_many(f"INSERT INTO {name} VALUES ({marks})", found)


def cut_off(repo, act):
    """Do it, and put the database back to just before that: the record is there, the move is not. What it returned."""
    real, copies = journal.write, []

    def write(core, record):
        copies.append(backup(core.database))
        return real(core, record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "write", write)
        made = act(repo)
    put_back(repo.database, copies[-1])
    return made


def brought_back(rows, whole):
    """What a recovery has brought back to a database that was ``whole`` once: all but moves of its own."""
    last = max(row[1] for row in whole["move_marks"])
    return refs_of({**rows, "move_marks": [row for row in rows["move_marks"] if row[1] <= last]})


def refs_of(rows):
    """What a journal must bring back, as it can be compared; the token of a branch is its own affair."""
    branches = [(row[0], row[1], row[2], row[3], row[5]) for row in rows["branches"]]
    found = {name: sorted(map(repr, rows[name])) for name in OF_REFS if name != "branches"}
    return {**found, "branches": sorted(map(repr, branches))}
