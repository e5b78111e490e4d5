"""How hard delete may be set."""

from datetime import timedelta

from desilt.errors import BadRequest, span
from desilt.repository.hard_delete import HardDeleteSetting

LONGEST = timedelta(days=30)  # what was dropped before is not remembered


def setting_of(grace: timedelta, max_share: float) -> HardDeleteSetting:
    """What people want, if it can be."""
    if not timedelta(0) <= grace <= LONGEST:
        raise BadRequest(f"a grace of {span(grace)} is not possible; give {span(LONGEST)} at most, or 0")
    if not 0 < max_share <= 1:
        raise BadRequest(f"a share of {max_share:.0%} would remove nothing, ever; give more than 0%, or switch it off")
    return HardDeleteSetting(grace, max_share)
