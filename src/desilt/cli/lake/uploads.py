"""`desilt lake` commands for objects that others upload: address, link, stage."""

from typing import Any

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import metadata_option, with_repository
from desilt.cli.complete import refs as refs_known
from desilt.cli.lake.at_once import may_drop
from desilt.cli.lake.objects import entry_row
from desilt.cli.output import done, emit_one
from desilt.domain.times import moment
from desilt.lake.repository import LakeRepository

content_type_option = click.option("--content-type", default="")


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("branch", shell_complete=refs_known)
@click.argument("path")
def address(repository: LakeRepository, branch: str, path: str, as_json: bool) -> None:
    """Ask where to upload an object for PATH on BRANCH without going through desilt.

    Upload to the printed uri with any tool, then bring the token to `desilt lake link`. It works once, for this
    path and branch, until it expires; what is uploaded and not linked by then is garbage.
    """
    given = repository.physical_address(branch, path)
    row: dict[str, Any] = {"uri": given.uri, "token": given.token, "expires": moment(given.ticket.expires_at)}
    emit_one(row, as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@may_drop
@click.argument("branch", shell_complete=refs_known)
@click.argument("path")
@click.argument("token")
@click.option("--checksum", help="Of the object, if you know it; otherwise it is read to compute its MD5.")
@content_type_option
@metadata_option
def link(
    repository: LakeRepository,
    branch: str,
    path: str,
    token: str,
    checksum: str | None,
    content_type: str,
    meta: dict[str, str],
    as_json: bool,
) -> None:
    """Stage at PATH on BRANCH what was uploaded to the address of TOKEN."""
    entry = repository.link(branch, path, token, checksum=checksum, content_type=content_type, metadata=meta)
    done(f"Linked {path}", entry_row(entry), as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@may_drop
@click.argument("branch", shell_complete=refs_known)
@click.argument("path")
@click.argument("uri")
@click.option("--size", type=click.IntRange(min=0), required=True, help="In bytes.")
@click.option("--checksum", required=True, help="MD5 or what else the other store gives it.")
@content_type_option
@metadata_option
def stage(
    repository: LakeRepository,
    branch: str,
    path: str,
    uri: str,
    size: int,
    checksum: str,
    content_type: str,
    meta: dict[str, str],
    as_json: bool,
) -> None:
    """Stage at PATH on BRANCH an object that lies outside of the lake, at URI. No job ever removes it."""
    entry = repository.stage(branch, path, uri, size=size, checksum=checksum, content_type=content_type, metadata=meta)
    done(f"Staged {path}", entry_row(entry), as_json=as_json)
