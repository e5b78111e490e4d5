"""`desilt lake` commands about objects: ls, stat, get, put, rm, cp, mv."""

import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import pairs, with_repository
from desilt.cli.complete import refs as refs_known
from desilt.cli.lake.at_once import may_drop
from desilt.cli.output import done, emit, emit_one
from desilt.cli.progress import counted, tracked
from desilt.domain.entry import Entry
from desilt.domain.units import size
from desilt.errors import BadRequest, NotFound
from desilt.lake.listing import PAGE, CommonPrefix
from desilt.lake.repository import LakeRepository
from desilt.records.removals import Tombstone

CHUNK = 4 * 2**20
BYTES = re.compile(r"(\d+)-(\d*)")


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("ref", shell_complete=refs_known)
@click.argument("prefix", default="")
@click.option("-r", "--recursive", is_flag=True, help="Every entry, not folded at /.")
@click.option("--delimiter", default="/", show_default=True, help="Where to fold.")
@click.option("--after", default="", metavar="PATH", help="Go on after this path.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many lines.")
@click.option("--gone", is_flag=True, help="Show hidden entries too, whose objects a run has marked.")
def ls(
    repository: LakeRepository,
    ref: str,
    prefix: str,
    recursive: bool,
    delimiter: str,
    after: str,
    limit: int | None,
    gone: bool,
    as_json: bool,
) -> None:
    """List what REF holds below PREFIX, in path order."""
    found = repository.list(ref, prefix, delimiter="" if recursive else delimiter, after=after, gone=gone)
    emit(
        (listed_row(one, stone, as_json=as_json) for one, stone in marked(repository, islice(found, limit))),
        ["modified", "size", "path"],
        as_json=as_json,
        empty=f"nothing below {prefix!r}",
    )


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("ref", shell_complete=refs_known)
@click.argument("path")
def stat(repository: LakeRepository, ref: str, path: str, as_json: bool) -> None:
    """Show what REF says of PATH: size, checksum, times, and where the bytes are."""
    emit_one(entry_row(repository.stat(ref, path)), as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("ref", shell_complete=refs_known)
@click.argument("path")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; by default, stdout.")
@click.option("--range", "part", metavar="FIRST-LAST", help="Only these bytes, counted from 0; LAST may be left out.")
def get(repository: LakeRepository, ref: str, path: str, output: Path | None, part: str | None, as_json: bool) -> None:
    """Read the object at PATH in REF."""
    start, length = byte_range(part)
    if start and start >= (whole := repository.stat(ref, path).size):
        raise BadRequest(f"--range begins at byte {start:,}, and the object has {whole:,}; begin before its end")
    chunks = repository.get(ref, path, start=start, length=length)
    if output is None:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        return
    with output.open("wb") as file:
        whole = repository.stat(ref, path).size
        of = min(whole - (start or 0), whole if length is None else length)
        written = sum(file.write(chunk) for chunk in tracked(chunks, f"get {path}", of_bytes=of))
    done(f"Wrote {size(written)} to {output}", {"path": path, "bytes": written}, as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@may_drop
@click.argument("branch", shell_complete=refs_known)
@click.argument("path")
@click.argument("file", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.option("-r", "--recursive", is_flag=True, help="FILE is a directory; its files go below PATH.")
@click.option("--content-type", default="")
@click.option("--meta", multiple=True, callback=pairs, metavar="KEY=VALUE", help="May be repeated.")
def put(
    repository: LakeRepository,
    branch: str,
    path: str,
    file: Path,
    recursive: bool,
    content_type: str,
    meta: dict[str, str],
    as_json: bool,
) -> None:
    """Upload FILE (- for stdin) and stage it on BRANCH at PATH, or below PATH/ under its own name."""
    if path.endswith("/") and not recursive and not file.is_dir():
        if str(file) == "-":
            raise click.UsageError(f"{path} ends in a slash, and stdin has no name to add; write the whole path")
        path += file.name
    if recursive and not file.is_dir():
        raise click.UsageError(f"{file} is no directory; leave --recursive out to upload it by itself")
    if file.is_dir() and not recursive:
        raise click.UsageError(f"{file} is a directory; pass --recursive to upload what is in it")
    if recursive:
        files = sorted(found for found in file.rglob("*") if found.is_file())
        for one in counted(files, f"put {file}"):
            upload(repository, branch, path + one.relative_to(file).as_posix(), one, content_type, meta)
        done(f"Staged {len(files):,} objects below {path}", {"path": path, "objects": len(files)}, as_json=as_json)
        return
    entry = upload(repository, branch, path, file, content_type, meta)
    done(f"Staged {path} ({size(entry.size)}, md5 {entry.checksum})", entry_row(entry), as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@may_drop
@click.argument("branch", shell_complete=refs_known)
@click.argument("path")
@click.option("-r", "--recursive", is_flag=True, help="Everything whose path begins with PATH.")
def rm(repository: LakeRepository, branch: str, path: str, recursive: bool, as_json: bool) -> None:
    """Remove PATH from BRANCH. Commits that hold it keep it."""
    if recursive:
        gone = sum(1 for _ in tracked(repository.remove_below(branch, path), f"rm {path}"))
        if not gone:
            raise NotFound("object below", path, f"see `desilt lake ls` on {branch!r}")
        done(f"Removed {gone:,} paths below {path}", {"prefix": path, "removed": gone}, as_json=as_json)
        return
    repository.remove(branch, path)
    done(f"Removed {path}", {"path": path, "removed": 1}, as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@may_drop
@click.argument("source_ref", shell_complete=refs_known)
@click.argument("source")
@click.argument("branch", shell_complete=refs_known)
@click.argument("path")
def cp(repository: LakeRepository, source_ref: str, source: str, branch: str, path: str, as_json: bool) -> None:
    """Copy SOURCE in SOURCE_REF to PATH on BRANCH.

    Inside one branch no bytes are copied: the new entry points to the same object.
    """
    entry = repository.copy(source_ref, source, branch, path)
    done(f"Copied {source} to {path}", entry_row(entry), as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@may_drop
@click.argument("branch", shell_complete=refs_known)
@click.argument("source")
@click.argument("path")
def mv(repository: LakeRepository, branch: str, source: str, path: str, as_json: bool) -> None:
    """Rename SOURCE to PATH on BRANCH."""
    entry = repository.move(branch, source, path)
    done(f"Moved {source} to {path}", entry_row(entry), as_json=as_json)


def upload(
    repository: LakeRepository, branch: str, path: str, file: Path, content_type: str, meta: dict[str, str]
) -> Entry:
    if str(file) == "-":
        return repository.put(branch, path, chunks(sys.stdin.buffer), content_type=content_type, metadata=meta)
    with file.open("rb") as opened:
        body = tracked(chunks(opened), f"put {path}", of_bytes=file.stat().st_size)
        return repository.put(branch, path, body, content_type=content_type, metadata=meta)


def chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk


def byte_range(part: str | None) -> tuple[int, int | None]:
    if part is None:
        return 0, None
    match = BYTES.fullmatch(part)
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        raise click.BadParameter(f"{part!r} is not FIRST-LAST, as in 0-99 or 100-", param_hint="--range")
    return int(match[1]), int(match[2]) - int(match[1]) + 1 if match[2] else None


def marked(
    repository: LakeRepository, found: Iterator[Entry | CommonPrefix]
) -> Iterator[tuple[Entry | CommonPrefix, Tombstone | None]]:
    """Each with the tombstone of its object, if a run removed it."""
    while page := list(islice(found, PAGE)):
        stones = repository.tombstones(one.address for one in page if isinstance(one, Entry))
        for one in page:
            yield one, stones.get(one.address) if isinstance(one, Entry) else None


def listed_row(one: Entry | CommonPrefix, stone: Tombstone | None, *, as_json: bool) -> dict[str, Any]:
    if isinstance(one, CommonPrefix):
        return {"prefix": one.path} if as_json else {"modified": "", "size": "", "path": one.path}
    if as_json:
        gone = {"gone": {"run": stone.run, "rule": stone.rule, "at": stone.condemned_at}} if stone else {}
        return {**entry_row(one), **gone}
    return {"modified": one.modified_at, "size": "gone" if stone else size(one.size), "path": one.path}


def entry_row(entry: Entry) -> dict[str, Any]:
    row = asdict(entry)
    row.pop("modified_ns")
    return {**row, "modified": entry.modified_at, "address_type": entry.address_type.name.lower()}
