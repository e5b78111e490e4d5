"""A check of a whole repository: every ref, commit, table, entry and object. It changes nothing."""

from desilt.lake.fsck.findings import ERRORS, FACTS, Finding, Findings, LookedAt
from desilt.lake.fsck.look import check

__all__ = ["ERRORS", "FACTS", "Finding", "Findings", "LookedAt", "check"]
