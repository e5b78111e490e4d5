"""Files and answers of a real lakeFS server, as they lie in ``fixtures/lakefs-server``."""

import json
from pathlib import Path

from desilt.sstable.table import Table

ROOT = Path(__file__).parent / "fixtures" / "lakefs-server"
FOLDERS = [ROOT / "namespace" / "_lakefs", ROOT / "tables", ROOT / "odd"]
ID = 64  # hex digits


def tables(kind):
    """The files of ``kind`` that hold entries, by id; dumps of refs left out."""
    found = {}
    for path in (path for folder in FOLDERS for path in _files(folder)):
        table = Table.from_bytes(path.read_bytes(), path.name)
        if table.kind == kind and "entity" not in table.properties:
            found[path.name] = path.read_bytes()
    return found


def dumped_commits():
    """The tables in which commits were dumped, opened."""
    opened = (Table.from_bytes(path.read_bytes(), path.name) for folder in FOLDERS for path in _files(folder))
    return [table for table in opened if (table.kind, table.properties.get("entity")) == ("ranges", b"commit")]


def answers(note):
    """The bodies of the answers under ``note``, as JSON."""
    lines = (json.loads(line) for line in (ROOT / "transcript.jsonl").read_text().splitlines())
    return [json.loads(line["body"]) for line in lines if line["note"] == note]


def _files(folder):
    return sorted(path for path in folder.iterdir() if len(path.name) == ID)
