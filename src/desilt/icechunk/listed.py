"""What lies in the folder of chunks: at once where there are few, else in parts, by the first letters of ids.

Ids are random, so each letter has about as many.
"""

from collections.abc import Sequence
from itertools import pairwise

from desilt.executors.executor import Executor
from desilt.icechunk.core import PREFIX
from desilt.icechunk.ids import LETTERS
from desilt.icechunk.layout import CHUNKS
from desilt.inventory.listing import Inventory, ListingPiece, Span, list_stretch, objects_in
from desilt.objects.store import ObjectStore

FEW = 5_000  # that are listed sooner than parts are given out
ABOUT = 1_000_000  # there may be in a folder that has more than a few


def chunks(executor: Executor, store: ObjectStore, folder: str, *, wanted: bool = True) -> Inventory:
    """All of them, as files in ``folder``."""
    spans = parts(store) if wanted else []
    pieces = [
        ListingPiece(store.uri, PREFIX, (span,), f"{PREFIX}{folder}part-{number:05d}")
        for number, span in enumerate(spans)
    ]
    listed = executor(list_stretch, pieces, rows=ABOUT if len(spans) > 1 else FEW, weigh=objects_in)
    return Inventory([one for several in listed for one in several], [CHUNKS] if wanted else [])


def parts(store: ObjectStore) -> Sequence[Span]:
    """The spans that cover all keys there. A directory is read as a whole, whatever part of it is asked for."""
    if store.moves_cheaply or _few(store):
        return [Span(CHUNKS, "", "")]
    cuts = ["", *(CHUNKS + letter for letter in LETTERS[1:]), ""]
    return [Span(CHUNKS, after, until) for after, until in pairwise(cuts)]


def _few(store: ObjectStore) -> bool:
    seen = 0
    for batch in store.list(CHUNKS):
        seen += batch.num_rows
        if seen >= FEW:
            return False
    return True
