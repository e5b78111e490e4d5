"""Hard delete for notebooks and services: switched on and off, workers, and the undo."""

from desilt.api.calls import fitting
from desilt.api.report import RunReport, shown
from desilt.api.words import Span, number_of, share_of, span_of, text_of
from desilt.api.workplace import Workplace
from desilt.errors import BadRequest
from desilt.jobs.harddelete.setting import setting_of
from desilt.jobs.harddelete.worker import hard_delete_of, remove
from desilt.repository.hard_delete import GRACE, MAX_SHARE, Discards, HardDeleteSetting, Restaged, WantedBack


class HardDeleteFace:
    """What was never committed goes once nothing points to it any more."""

    def __init__(self, place: Workplace) -> None:
        self._place = place

    @property
    def setting(self) -> HardDeleteSetting | None:
        """How it works; None: it is off."""
        return hard_delete_of(self._place.repository).setting()

    @fitting
    def on(self, *, grace: Span = GRACE, max_share: float | str = MAX_SHARE) -> None:
        """Watch what is uploaded from here on; what is dropped can be restored for ``grace``."""
        wait, share = span_of("grace", grace), share_of("max_share", max_share)
        setting = setting_of(GRACE if wait is None else wait, MAX_SHARE if share is None else share)
        hard_delete_of(self._place.repository).switch(setting)

    @fitting
    def off(self) -> int:
        """Watch nothing any more; how many staged uploads are left to the collector."""
        return hard_delete_of(self._place.repository).switch(None)

    @property
    def discards(self) -> Discards:
        """What it has condemned, and what it watches."""
        return hard_delete_of(self._place.repository).discards()

    @fitting
    def run(
        self, *, max_share: float | str | None = None, max_deletes_per_second: int | None = None
    ) -> RunReport | None:
        """Remove what has waited for its grace; None if there was nothing."""
        share, pace = share_of("max_share", max_share), number_of("max_deletes_per_second", max_deletes_per_second)
        report = remove(self._place.repository, max_share=share, max_deletes_per_second=pace)
        return None if report is None else shown(report)

    @fitting
    def restore(self, *, branch: str | None = None, prefix: str = "", addresses: tuple[str, ...] = ()) -> Restaged:
        """Stage again what nobody has claimed yet: of ``branch``, below ``prefix``, or at some ``addresses``."""
        if isinstance(addresses, str):
            raise BadRequest("'addresses' is a text; give a list of them")
        named = tuple(text_of("addresses", one) or "" for one in addresses)
        wanted = WantedBack(text_of("branch", branch), text_of("prefix", prefix) or "", named)
        return hard_delete_of(self._place.repository).restore(wanted)

    def __repr__(self) -> str:
        return f"<hard delete of {self._place.opened.repository.name!r}>"
