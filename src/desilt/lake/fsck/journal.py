"""Whether the database and the journal beside the objects tell the same story."""

from desilt.errors import StorageFailed, Unreadable, WentBack
from desilt.lake import journal, repositories, restored
from desilt.lake.core import Core
from desilt.lake.fsck.tables import MOST_AT_ONCE, at_once
from desilt.lake.layout import DATA
from desilt.repository.findings import Notebook


def note_journal(core: Core, notes: Notebook, *, deep: bool) -> None:
    """Write down what either knows and the other does not; ``deep`` reads every record."""
    with core.database.read() as tx:
        first, marks = repositories.journal_from(tx, core.uid), repositories.marks(tx, core.uid)
    _note_newer(core, notes)
    written = set(journal.after(core, first - 1))
    known = {generation for generation in marks if generation >= first}
    for generation in sorted(known - written):
        notes.add("broken-journal", "the database knows it, and there is no record of it", move=str(generation))
    wanted = sorted(known & written) if deep else sorted(known & written)[-1:]
    for generation, flaw in at_once(lambda number: _flaw(core, number, marks[number]), wanted, MOST_AT_ONCE):
        if flaw:
            notes.add("broken-journal", flaw, move=str(generation))
    folders = [part for branch in core.store.folders(core.prefix + DATA) for part in core.store.folders(branch)]
    for folder in restored.unknown_partitions(core, folders):
        notes.add("unknown-partition", "objects lie in it, and the database never opened it", folder=folder)


def _note_newer(core: Core, notes: Notebook) -> None:
    last, newer = journal.newer(core)
    if not newer:
        return
    try:
        line = journal.line(core, last, newer[-1])
    except WentBack as error:
        notes.add("newer-journal", str(error), move=str(newer[-1]))
        return
    except (Unreadable, StorageFailed) as error:
        notes.add("broken-journal", str(error), move=str(newer[-1]))
        return
    kind = "cut-off-move" if len(line) == 1 and line[0].mark in last.intents else "newer-journal"
    for record in line:
        notes.add(kind, journal.told(record), move=str(record.generation))


def _flaw(core: Core, generation: int, mark: str) -> str:
    try:
        found = journal.read(core, generation)
    except (Unreadable, StorageFailed) as error:
        return str(error)
    return "" if found.mark == mark else "the database knows another move of that number"
