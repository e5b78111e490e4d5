"""What lies in the folder of chunks: at once where there are few, else in parts, by the first letters of ids.

Ids are random, so each letter has about as many.
"""

from collections.abc import Sequence
from itertools import pairwise

from desilt.executors.executor import Executor
from desilt.icechunk.core import PREFIX
from desilt.icechunk.format.ids import LETTERS
from desilt.icechunk.layout import CHUNKS
from desilt.inventory.listing import Inventory, ListingPiece, Span, list_stretch, objects_in
from desilt.objects.store import ObjectStore

FEW = 5_000  # that are listed sooner than parts are given out
ABOUT = 1_000_000  # there may be in a folder that has more than a few
FEW_FILES = 100_000  # of a directory, which is listed ten times as fast
READERS = 8  # of one directory at most: each reads the names of all files, and looks at its own part of them


def chunks(executor: Executor, store: ObjectStore, folder: str, *, referred_to: int, wanted: bool = True) -> Inventory:
    """All of them, as files in ``folder``; so many are referred to; there may be any number besides."""
    readers = min(executor.width, READERS) if referred_to > FEW_FILES else 1
    spans = parts(store, readers) if wanted else []
    pieces = [
        ListingPiece(store.uri, PREFIX, (span,), f"{PREFIX}{folder}part-{number:05d}")
        for number, span in enumerate(spans)
    ]
    listed = executor(list_stretch, pieces, rows=ABOUT if len(spans) > 1 else FEW, weigh=objects_in)
    return Inventory([one for several in listed for one in several], [CHUNKS] if wanted else [])


def parts(store: ObjectStore, readers: int) -> Sequence[Span]:
    """The spans that cover all keys there; of a directory, one for each of its readers."""
    pieces = readers if store.moves_cheaply else 1 if _few(store) else len(LETTERS)
    step = -(-len(LETTERS) // pieces)
    cuts = ["", *(CHUNKS + letter for letter in LETTERS[step::step]), ""]
    return [Span(CHUNKS, after, until) for after, until in pairwise(cuts)]


def _few(store: ObjectStore) -> bool:
    seen = 0
    for batch in store.list(CHUNKS):
        seen += batch.num_rows
        if seen >= FEW:
            return False
    return True
