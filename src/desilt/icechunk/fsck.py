"""A check of an Icechunk repository: every ref, snapshot, manifest and reference. It changes nothing."""

from desilt.icechunk.core import IcechunkCore
from desilt.repository.findings import Findings, Progress


def check(core: IcechunkCore, *, deep: bool, progress: Progress) -> Findings:
    """What is wrong, and what is worth knowing."""
    raise NotImplementedError
