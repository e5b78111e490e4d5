"""What people order to be kept, whatever a policy says."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from desilt.api.calls import fitting
from desilt.api.words import end_of, text_of
from desilt.api.workplace import Workplace
from desilt.jobs import holds
from desilt.records.holds import Hold


class HoldList:
    """The holds of a repository, oldest first; those whose day has passed are in it, too."""

    def __init__(self, place: Workplace) -> None:
        self._place = place

    @fitting
    def add(
        self,
        *,
        reason: str = "",
        prefix: str | None = None,
        ref: str | None = None,
        address: str | None = None,
        until: datetime | timedelta | str | None = None,
    ) -> Hold:
        """Keep every path that begins with ``prefix``, all that ``ref`` has now, or the object at ``address``.

        ``until`` is a moment, or a length of time such as ``"30d"``; None: for good.
        """
        named = {"prefix": prefix, "ref": ref, "address": address}
        kind, value = holds.one_of(**{name: text_of(name, given) for name, given in named.items()})
        return holds.hold(
            self._place.repository, kind, value, reason=text_of("reason", reason) or "", until=end_of("until", until)
        )

    @fitting
    def lift(self, hold: str | Hold) -> None:
        """What it kept is again as old as it is."""
        holds.lift(self._place.repository, hold.id if isinstance(hold, Hold) else text_of("hold", hold) or "")

    def __iter__(self) -> Iterator[Hold]:
        return iter(holds.every(self._place.repository))

    def __len__(self) -> int:
        return len(holds.every(self._place.repository))

    def __repr__(self) -> str:
        return f"<{len(self)} holds on {self._place.repository.name!r}>"
