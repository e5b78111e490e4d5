"""The keys of a bucket in byte order, as Arrow batches, in one of two ways.

*Flat*: one stream of pages, which S3, GCS and Azure's flat namespace give in
byte order. Constant memory, and a slice of a huge folder costs only itself. The
order is checked on the way: a store that breaks it is refused, never believed.

*Walk*: folder by folder, each sorted here. For stores that list a folder where
its name sorts, not its keys (``a/x`` before ``a-b``), and so lose objects when
asked for what comes *after* a key. SeaweedFS is one and is recognised;
``DESILT_LISTING=walk`` asks for it elsewhere.

A page that comes in part is asked for again, and one that never comes whole is an error: no listing ends before
its end. An error that comes in place of a page looks like the last one: so where a store can be asked whether there
is more *behind* it, that is asked (:mod:`desilt.objects.s3_listing`).
"""

import os
import random
import time
import urllib.error
import urllib.request
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import obstore
import pyarrow as pa
import pyarrow.compute as pc
from obstore.exceptions import GenericError

from desilt.errors import StorageFailed
from desilt.objects.buckets import Client, endpoint
from desilt.objects.store import BATCH_ROWS, LISTING, may_hold

if TYPE_CHECKING:
    from arro3.core import Table
    from obstore import ListResult

ANSWER_SECONDS = 120  # as long as any request may take
PAUSES = (0.2, 1.0, 5.0)  # seconds, about, until a page that was cut off is asked for again
CUT_OFF = ("list response body", "invalid list response")
FULL_PAGE = 1000  # keys; where a page has more, it is a multiple of that
BEYOND = "\ufffd"  # sorts behind every key in everyday use, and every store takes it

Told = TypeVar("Told")
Behind: TypeAlias = Callable[[str, str], list[str]]  # the first keys below a folder after a key, if there are any


def flat(
    client: Client, root: str, prefix: str, after: str, *, behind: Behind | None = None
) -> Iterator[pa.RecordBatch]:
    """Keys below ``root``, believing that the store lists in byte order, and checking that it does."""
    folder = (root + prefix).rpartition("/")[0]
    last = ""
    for page in to_the_end(client, folder, root + offset(prefix, after), behind):
        keys = page.column("path")
        ordered = pa.concat_arrays([pa.array([last], keys.type), keys])
        if not pc.all(pc.less(ordered[:-1], ordered[1:])).as_py():
            raise StorageFailed(
                f"the bucket listed {folder!r} out of byte order, or a key there ends in a slash; "
                "set DESILT_LISTING=walk to list it folder by folder"
            )
        last = keys[-1].as_py()
        yield chosen(page, root, prefix, after)
        if last > root + prefix and not last.startswith(root + prefix):
            return


def walk(
    client: Client,
    root: str,
    folder: str,
    prefix: str,
    after: str,
    until: str = "",
    *,
    behind: Behind | None = None,
) -> Iterator[pa.RecordBatch]:
    """Keys below ``folder`` (empty, or ending in a slash), whatever order the store has."""
    found = one_level(client, root + folder, behind)
    rows = chosen(pa.table(found["objects"]).combine_chunks(), root, max(prefix, folder, key=len), after)
    rows = rows.sort_by("key")
    keys = rows.column("key").to_pylist()
    done = 0
    for inner in sorted(each.removeprefix(root) + "/" for each in found["common_prefixes"]):
        if until and inner >= until:
            break
        if inner != folder and may_hold(inner, prefix, after):
            here = bisect_left(keys, inner)
            yield from rows[done:here].to_batches()
            done = here
            yield from walk(client, root, inner, prefix, after, until, behind=behind)
    yield from rows[done:].to_batches()


def chosen(rows: pa.Table | pa.RecordBatch, root: str, prefix: str, after: str) -> pa.Table | pa.RecordBatch:
    """The wanted part of obstore's ``rows``, as :data:`LISTING`."""
    wanted = pc.and_(
        pc.starts_with(rows.column("path"), root + prefix),
        pc.greater(rows.column("path"), pa.scalar(root + after)),
    )
    rows = rows.filter(wanted)
    columns = [
        pc.utf8_slice_codeunits(rows.column("path"), len(root)),
        rows.column("size").cast(pa.int64()),
        rows.column("last_modified").cast(LISTING.field("modified_at").type),
    ]
    return type(rows).from_arrays(columns, schema=LISTING)


def before(some: Iterable[pa.RecordBatch], until: str) -> Iterator[pa.RecordBatch]:
    """Rows with keys before ``until``, unless it is empty; what comes later is not asked for."""
    for batch in some:
        rows = batch.filter(pc.less(batch["key"], until)) if until else batch
        yield rows
        if rows.num_rows < batch.num_rows:
            return


def regrouped(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about :data:`~desilt.objects.store.BATCH_ROWS`, none of them empty."""
    waiting: list[pa.RecordBatch] = []
    for batch in some:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= BATCH_ROWS:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
            waiting.clear()
    if any(each.num_rows for each in waiting):
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def to_the_end(client: Client, folder: str, start: str, behind: Behind | None = None) -> Iterator[pa.RecordBatch]:
    """Pages of what comes after ``start``, all there are.

    Where nobody can be asked what is ``behind`` the last, a server that says no more after a full page is asked to
    go on: some say that there is more, but not how to ask for it, and obstore takes that for the end.
    """
    pauses = iter(PAUSES)
    while True:
        rows = 0
        try:
            for page in pages(client, folder, start):
                yield (batch := pa.record_batch(page))
                rows, start, pauses = rows + batch.num_rows, batch["path"][-1].as_py(), iter(PAUSES)
        except GenericError as error:
            pause_after(error, pauses)
            continue
        if behind is None and (rows == 0 or rows % FULL_PAGE):
            return
        if behind is not None:
            missed = behind(folder and f"{folder}/", start)
            if not missed:
                return
            if rows == 0:
                pause_or_raise(not_listed(missed[0], folder), pauses)


def one_level(client: Client, folder: str, behind: Behind | None = None) -> "ListResult[Table]":
    """What lies right in ``folder`` (empty, or ending in a slash): all there is.

    What is found ``behind`` the last name, and was not told, nor is when asked for again, is an error. Where nobody
    can be asked for that, it is looked for after as many names as full pages have, as :func:`to_the_end` does.
    """
    pauses = iter(PAUSES)
    while True:
        found = in_whole(lambda: obstore.list_with_delimiter(client, folder or None, return_arrow=True))
        files = pa.table(found["objects"])["path"].to_pylist()
        known = {*files, *found["common_prefixes"]}
        if behind is None and (not known or len(known) % FULL_PAGE):
            return found
        last = max([folder, *files, *(f"{each}/{BEYOND}" for each in found["common_prefixes"])])
        more = behind(folder, last) if behind is not None else first_page(client, folder, last)
        inside = (folder + key.removeprefix(folder).partition("/")[0] for key in more if key.startswith(folder))
        missing = next((one for one in inside if one not in known), "")
        if not missing:
            return found
        pause_or_raise(not_listed(missing, folder), pauses)  # or it came just now


def first_page(client: Client, folder: str, start: str) -> list[str]:
    page = in_whole(lambda: next(pages(client, folder.rstrip("/"), start), None))
    return [] if page is None else list(pa.record_batch(page)["path"].to_pylist())


def in_whole(ask: Callable[[], Told]) -> Told:
    """What ``ask`` tells, asked again where its answer was cut off."""
    pauses = iter(PAUSES)
    while True:
        try:
            return ask()
        except GenericError as error:
            pause_after(error, pauses)


def pause_after(error: GenericError, pauses: Iterator[float]) -> None:
    """Wait, if ``error`` is one that obstore does not try again by itself, and it may be over soon; else raise it."""
    if not any(sign in str(error) for sign in CUT_OFF):
        raise error
    pause_or_raise(error, pauses)


def pause_or_raise(error: Exception, pauses: Iterator[float]) -> None:
    """Wait for the next of ``pauses``; after the last of them it is an error."""
    pause = next(pauses, None)
    if pause is None:
        raise error
    time.sleep(pause * random.uniform(0.5, 1.5))


def not_listed(key: str, folder: str) -> StorageFailed:
    way_out = "check that the endpoint speaks version 2 of listings, and try again later"
    return StorageFailed(f"the bucket has {key!r}, and does not list it in {folder!r}; {way_out}")


def pages(client: Client, folder: str, start: str) -> Iterator[object]:
    try:
        stream = obstore.list(client, folder or None, offset=start or None, chunk_size=BATCH_ROWS, return_arrow=True)
    except ValueError:  # the offset cannot be a key, so only its comparison counts: start at the front
        stream = obstore.list(client, folder or None, chunk_size=BATCH_ROWS, return_arrow=True)
    return (page for page in stream if page.num_rows)


def offset(prefix: str, after: str) -> str:
    """A string below every wanted key, and above as many others as is simple."""
    if after >= prefix:
        return after
    cut = prefix[-1]
    if cut == "/" or not "!" < cut < "\x7f":
        return after
    below = chr(ord(cut) - 1)
    return prefix[:-1] + ("." if below == "/" else below) + BEYOND  # an empty segment is no path


def must_walk(scheme: str) -> bool:
    """Whether the store of ``scheme`` in this environment is known to list in another order."""
    if (asked := os.environ.get("DESILT_LISTING")) is not None:
        return asked == "walk"
    server = endpoint(scheme) if scheme == "s3" else None
    if server is None:
        return False
    try:
        return server_name(server).startswith("SeaweedFS")
    except TimeoutError:  # taken for another that lists in byte order, it would lose objects
        raise StorageFailed(f"{server} does not say what it is; try again, or set DESILT_LISTING=walk") from None
    except (OSError, ValueError):  # not there, or no URL: the listing itself will say so
        return False


@cache
def server_name(url: str) -> str:
    """What a server calls itself; empty when it does not say."""
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
            return str(answer.headers.get("Server", ""))
    except urllib.error.HTTPError as refused:  # any answer will do
        with refused:
            return str(refused.headers.get("Server", ""))
