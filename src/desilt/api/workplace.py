"""A repository in use: what every part of the API works with, until it is closed."""

from dataclasses import dataclass, field

from desilt.errors import BadRequest
from desilt.executors.by_size import BySize
from desilt.executors.executor import Executor
from desilt.repository.opening import Opened
from desilt.repository.protocol import Repository


@dataclass(slots=True)
class Workplace:
    """A repository, and who does the work on it."""

    opened: Opened
    executor: Executor
    closed: bool = field(default=False, init=False)

    @property
    def repository(self) -> Repository:
        if self.closed:
            name = self.opened.repository.name
            raise BadRequest(f"repository {name!r} was closed; open it again with desilt.open, or use it inside `with`")
        return self.opened.repository

    def close(self) -> None:
        """Twice is once."""
        if not self.closed:
            self.closed = True
            if isinstance(self.executor, BySize):
                self.executor.close()
            self.opened.close()
