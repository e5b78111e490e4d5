"""How much a sweep may do unasked, and the same as people write it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from math import ceil

from desilt.errors import BadRequest

MAX_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a run may do unasked."""

    max_plan_age: timedelta = timedelta(days=1)
    max_share: float = MAX_SHARE
    max_objects: int | None = None
    allow_empty: bool = False
    confirm: bool = False
    after_restore: bool = False
    clock_is_right: bool = False
    max_deletes_per_second: int | None = None  # of all executors together

    def __post_init__(self) -> None:
        if not 0 <= self.max_share <= 1:  # what is no number is neither
            raise BadRequest(f"'max_share' is {self.max_share}; give a share from 0 to 1, or such as '30%'")
        if self.max_objects is not None and self.max_objects < 0:
            raise BadRequest(f"'max_objects' is {self.max_objects}; give how many may go, 0 for none")
        if self.max_deletes_per_second is not None and self.max_deletes_per_second < 1:
            fact = f"'max_deletes_per_second' is {self.max_deletes_per_second}"
            raise BadRequest(f"{fact}; give how many may go in a second, at least 1")

    def words(self) -> str:
        """What to write behind a command for it to have these limits."""
        return " ".join(self._words())

    def keywords(self) -> str:
        """The same for Python."""
        usual = Limits()
        changed = {one.name: getattr(self, one.name) for one in fields(self)}
        return ", ".join(
            f"{name}={value!r}" for name, value in changed.items() if value != getattr(usual, name)
        ).replace("datetime.timedelta", "timedelta")

    def _words(self) -> Iterator[str]:
        usual = Limits()
        if self.confirm:
            yield "--confirm"
        if self.max_share != usual.max_share:
            yield f"--max-share {self.max_share * 100:.10g}%"
        if self.max_objects is not None:
            yield f"--max-objects {self.max_objects}"
        if self.allow_empty:
            yield "--allow-empty"
        if self.max_plan_age != usual.max_plan_age:
            yield f"--max-plan-age {ceil(self.max_plan_age / timedelta(hours=1))}h"
        if self.after_restore:
            yield "--after-restore"
        if self.clock_is_right:
            yield "--clock-is-right"
        if self.max_deletes_per_second is not None:
            yield f"--max-deletes-per-second {self.max_deletes_per_second}"
