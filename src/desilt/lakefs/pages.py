"""A page of a branch's listing, by column.

A server gives a thousand entries at once, and a branch has as many pages as it has thousands; most of what a plan asks
for are those. Arrow reads one in less time than it takes as rows, and lets other threads go on. It reads only what is
plain: whatever is odd about a page, :func:`by_column` has nothing, and whoever asked looks at it row by row, and says
what is wrong with it.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

UNSURE = "\N{REPLACEMENT CHARACTER}"  # what a server writes for bytes of a path that are no UTF-8
ENTRY = pa.struct([(name, pa.string()) for name in ("path", "path_type", "physical_address", "checksum")])
PAGINATION = pa.struct([("has_more", pa.bool_()), ("next_offset", pa.string()), ("results", pa.int64())])
ANSWER = pj.ParseOptions(
    explicit_schema=pa.schema([("pagination", PAGINATION), ("results", pa.list_(ENTRY))]),
    newlines_in_values=False,
    unexpected_field_behavior="ignore",
)


@dataclass(frozen=True, slots=True)
class PageEnd:
    """How a page ends, and what it says of the next."""

    given: int
    counted: int  # as the server says
    last: str  # path; "" of none
    known: str  # the last path that is UTF-8; "" of none
    more: bool
    following: str  # where the server goes on


@dataclass(frozen=True, slots=True)
class ServedPage:
    """Paths, and the address of what is at each: a whole URI."""

    paths: pa.Array
    addresses: pa.Array


def by_column(raw: bytes) -> tuple[ServedPage, PageEnd] | None:
    """A page whose every entry has all that it should; None of any other."""
    if not raw.startswith(b"{"):  # Arrow does not survive an answer that is null
        return None
    try:
        raw.decode()  # what is ignored is text, too
        told = pj.read_json(pa.BufferReader(raw), pj.ReadOptions(use_threads=False, block_size=len(raw) + 1), ANSWER)
    except (pa.ArrowException, ValueError, OverflowError):
        return None
    if told.num_rows != 1 or told["results"].null_count:
        return None
    pagination = told["pagination"][0].as_py() or {}
    rows = told["results"].combine_chunks().flatten()
    paths, kinds, addresses, checksums = rows.flatten()
    if None in (pagination.values() or [None]) or any(one.null_count for one in (paths, kinds, addresses, checksums)):
        return None
    if pc.any(pc.or_(pc.not_equal(kinds, "object"), pc.equal(addresses, ""))).as_py():
        return None
    known = next((place for place in reversed(range(len(paths))) if UNSURE not in paths[place].as_py()), None)
    end = PageEnd(
        len(paths),
        pagination["results"],
        paths[-1].as_py() if len(paths) else "",
        "" if known is None else paths[known].as_py(),
        pagination["has_more"],
        pagination["next_offset"],
    )
    return ServedPage(paths, addresses), end
