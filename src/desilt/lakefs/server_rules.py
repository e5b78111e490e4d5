"""Verdicts by the server's own rules: which commits they keep, as a document that a plan can be checked by."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from desilt.lakefs.active import meant
from desilt.lakefs.server import GcRules
from desilt.records.holds import HoldKind
from desilt.repository.snapshot import Snapshot

SERVER = "gc-rules"  # the job that goes by them


def kept_by(document: Mapping[str, Any], seen: Snapshot, now: datetime) -> set[str]:
    """The commits that the rules keep, with those that people ordered to be kept; and, if told so, what tags name."""
    rules = GcRules(document["default_days"], document["branch_days"])
    heads = {branch.name: branch.head for branch in seen.branches}
    kept = meant(seen.commits, heads, rules, now)
    kept |= {hold.value for hold in seen.held(HoldKind.REF)} & seen.commits.keys()
    return kept | {tag.target for tag in seen.tags} if document["tags"] else kept
