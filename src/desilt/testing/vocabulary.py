"""Every operation a scenario can have: what people do to a lake, one function each.

``put("main", "a")`` gives the operation; the function's body is what it does when
its turn comes. docs/scenarios.md is the same table for readers.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from desilt.domain.history import Commit
from desilt.lake.links import PhysicalAddress
from desilt.lake.merge import Strategy
from desilt.testing.operation import Operation, Turn, Word

Metadata = Mapping[str, str] | None
SOME_BYTES = 16
CHUNK_BYTES = 1 << 20
ONE_CONTENT = (("text", "bytes"), ("text", "seed"))


@dataclass(frozen=True, slots=True)
class Handed:
    """An address that was handed out, and what for."""

    branch: str
    path: str
    out: PhysicalAddress


VOCABULARY: dict[str, Word] = {}


def word(
    *, names: str = "", one_of: tuple[str, ...] = (), never_both: tuple[tuple[str, str], ...] = ()
) -> Callable[[Callable[..., Any]], Word]:
    """Put a function into the vocabulary; ``names`` is what `as` remembers of it: a commit or an address."""

    def enter(act: Callable[..., Any]) -> Word:
        made = Word(act, names, one_of, never_both)
        VOCABULARY[made.do] = made
        return made

    return enter


@word()
def wait(_: Turn) -> None:
    """Nothing, until `at`."""


@word()
def branch(turn: Turn, branch: str, from_: str | None = None) -> None:
    """Make a branch at a ref, by default at the default branch."""
    turn.repository.create_branch(branch, from_ or turn.repository.default_branch)


@word()
def delete_branch(turn: Turn, branch: str, force: bool = False) -> None:
    turn.repository.delete_branch(branch, force=force)


@word()
def tag(turn: Turn, tag: str, from_: str) -> None:
    turn.repository.create_tag(tag, from_)


@word()
def delete_tag(turn: Turn, tag: str) -> None:
    turn.repository.delete_tag(tag)


@word(never_both=ONE_CONTENT)
def put(
    turn: Turn,
    branch: str,
    path: str,
    text: str | None = None,
    bytes_: int = SOME_BYTES,
    seed: int | None = None,
    content_type: str = "",
    metadata: Metadata = None,
) -> None:
    """Upload and stage."""
    body = content(turn, text, bytes_, seed)
    turn.repository.put(branch, path, body, content_type=content_type, metadata=metadata)


@word()
def copy(turn: Turn, branch: str, source: str, path: str, from_: str | None = None) -> None:
    """Inside a branch, a second entry on the same object; from another ref, the bytes are copied."""
    turn.repository.copy(from_ or branch, source, branch, path)


@word()
def move(turn: Turn, branch: str, source: str, path: str) -> None:
    turn.repository.move(branch, source, path)


@word()
def delete(turn: Turn, branch: str, path: str) -> None:
    turn.repository.remove(branch, path)


@word(one_of=("all", "prefix", "path"))
def reset(turn: Turn, branch: str, path: str | None = None, prefix: str | None = None, all_: bool = False) -> None:
    """Forget what is staged."""
    if all_:
        turn.repository.reset(branch)
    else:
        turn.repository.reset(branch, path=path, prefix=prefix)


@word(names="address")
def address(turn: Turn, branch: str, path: str) -> Handed:
    """Ask for an address to upload to without the lake; its ticket runs from now."""
    return Handed(branch, path, turn.repository.physical_address(branch, path))


@word(never_both=ONE_CONTENT)
def upload(
    turn: Turn, address: Handed, text: str | None = None, bytes_: int = SOME_BYTES, seed: int | None = None
) -> None:
    """Write to an address as an outsider does: the lake does not hear of it."""
    turn.repository.store.put(turn.repository.prefix + address.out.ticket.address, content(turn, text, bytes_, seed))


@word()
def link(
    turn: Turn,
    address: Handed,
    branch: str | None = None,
    path: str | None = None,
    content_type: str = "",
    metadata: Metadata = None,
) -> None:
    """Stage what was uploaded to an address, by default where it was asked for."""
    turn.repository.link(
        address.branch if branch is None else branch,
        address.path if path is None else path,
        address.out.token,
        content_type=content_type,
        metadata=metadata,
    )


@word()
def stage(
    turn: Turn,
    branch: str,
    path: str,
    uri: str,
    size: int,
    checksum: str,
    content_type: str = "",
    metadata: Metadata = None,
) -> None:
    """Stage an object that lies outside of the lake."""
    turn.repository.stage(branch, path, uri, size=size, checksum=checksum, content_type=content_type, metadata=metadata)


@word(names="commit")
def commit(
    turn: Turn,
    branch: str,
    message: str = "",
    committer: str = "",
    metadata: Metadata = None,
    allow_empty: bool = False,
) -> Commit:
    return turn.repository.commit(branch, message, committer=committer, metadata=metadata, allow_empty=allow_empty)


@word(names="commit")
def merge(
    turn: Turn,
    from_: str,
    branch: str,
    strategy: Strategy | None = None,
    message: str = "",
    committer: str = "",
    metadata: Metadata = None,
) -> Commit | None:
    """Merge a ref into a branch; no commit where there is nothing to bring."""
    return turn.repository.merge(
        from_, branch, message=message, committer=committer, metadata=metadata, strategy=strategy
    )


@word(names="commit")
def revert(
    turn: Turn, branch: str, commit: str, parent: int | None = None, message: str = "", committer: str = ""
) -> Commit:
    """Take back a commit, by a new one."""
    return turn.repository.revert(branch, commit, parent=parent, message=message, committer=committer)


def days(count: float) -> Operation:
    """So many days go by."""
    return wait(at=timedelta(days=count))


def hours(count: float) -> Operation:
    return wait(at=timedelta(hours=count))


def content(turn: Turn, text: str | None, size: int, seed: int | None) -> Iterator[bytes]:
    """A text, or ``size`` bytes that depend on the seed alone; without one, on the operation's number."""
    if text is not None:
        yield text.encode()
        return
    chance = random.Random(f"operation {turn.number}" if seed is None else seed)
    for start in range(0, size, CHUNK_BYTES):
        yield chance.randbytes(min(CHUNK_BYTES, size - start))
