"""REPO of commands that are about a lake alone."""

import functools
from typing import Any

from desilt.cli.common import Command, with_repository
from desilt.errors import BadRequest
from desilt.lake.repository import LakeRepository
from desilt.repository.protocol import Repository


def with_lake(command: Command) -> Command:
    """As :func:`with_repository`; the command gets a LakeRepository, and one of another kind is refused."""

    @functools.wraps(command)
    def checked(repository: Repository, **rest: Any) -> None:
        if not isinstance(repository, LakeRepository):
            raise BadRequest(
                f"{repository.name!r} is not in a lake, which is all that `desilt lake` works on; use lakectl for "
                "what is on a lakeFS server, or copy it with `desilt lakefs import`"
            )
        command(repository, **rest)

    return with_repository(checked)
