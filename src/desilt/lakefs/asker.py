"""What is asked of a server about one repository, and answers that lack something."""

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from desilt.errors import NotFound
from desilt.lakefs.calls import Absent, Call, Calls, segment
from desilt.lakefs.settings import Settings

V = TypeVar("V")


class Asker:
    """One repository of a server."""

    def __init__(self, settings: Settings, calls: Calls) -> None:
        self._calls, self.name = calls, settings.repository
        self._path = f"/repositories/{segment(settings.repository)}"

    def _sure(
        self,
        call: Call,
        method: str,
        path: str,
        query: Mapping[str, str | bytes] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The answer about something that must be there."""
        return self._calls.told(call, self._sure_raw(call, method, path, query, body))

    def _sure_raw(
        self,
        call: Call,
        method: str,
        path: str,
        query: Mapping[str, str | bytes] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The same as it came."""
        try:
            return self._calls.raw(call, method, path, query=query, body=body)
        except Absent as absent:
            if absent.message == "branch not found":
                raise NotFound("branch", path.split("/")[4], "it may have been deleted just now; run again") from None
            raise self._calls.failed(call, f"said {absent.status}: {absent.message!r}") from None

    def _field(self, call: Call, told: Mapping[str, Any], name: str, kind: type[V]) -> V:
        found = told.get(name)
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            self._lacking(call, name)
        return found

    def _lacking(self, call: Call, name: str) -> NoReturn:
        raise self._calls.failed(call, f"left {name} out of its answer", "upgrade it, or see whether its URL is right")
