"""A check of a whole repository: every ref, commit, table, entry and object. It changes nothing."""

from desilt.lake.fsck.look import check
from desilt.repository.findings import ERRORS, FACTS, Finding, Findings, LookedAt

__all__ = ["ERRORS", "FACTS", "Finding", "Findings", "LookedAt", "check"]
