"""Verdicts by the server's own rules: which commits they keep, as a document that a plan can be checked by."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from desilt.errors import BadRequest, PolicyReplaced
from desilt.lakefs.active import meant
from desilt.lakefs.server import GcRules, Server
from desilt.records.holds import HoldKind
from desilt.repository.gate import Rules
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import KeptByRules

SERVER = "gc"  # the job that goes by them


def kept(server: Server, seen: Snapshot, now: datetime, *, tags: bool) -> KeptByRules:
    """What they keep of ``seen``; whoever has none set cannot go by them."""
    rules = _rules(server)
    document = {"default_days": rules.default_days, "branch_days": dict(rules.branch_days), "tags": tags}
    heads = {branch.name: branch.head for branch in seen.branches}
    named = {tag.name: tag.target for tag in seen.tags}
    by = Rules(SERVER, document, _fingerprint(document), given=True, branches=heads, tags=named)
    days = [f"{rules.default_days} days", *(f"{name} {days}" for name, days in sorted(rules.branch_days.items()))]
    text = f"the server's rules: {', '.join(days)}{'; what tags name is held' if tags else ''}"
    return KeptByRules(by, text, frozenset(kept_by(document, seen, now)))


def kept_by(document: Mapping[str, Any], seen: Snapshot, now: datetime) -> set[str]:
    """The commits that the rules keep, with those that people ordered to be kept; and, if told so, what tags name."""
    rules = GcRules(document["default_days"], document["branch_days"])
    heads = {branch.name: branch.head for branch in seen.branches}
    found = meant(seen.commits, heads, rules, now)
    found |= {hold.value for hold in seen.held(HoldKind.REF)} & seen.commits.keys()
    return found | {tag.target for tag in seen.tags} if document["tags"] else found


def check(server: Server, run: str, document: Mapping[str, Any]) -> None:
    """Refuse to go on by rules that somebody has changed since."""
    rules = _rules(server)
    if (rules.default_days, dict(rules.branch_days)) != (document["default_days"], document["branch_days"]):
        raise PolicyReplaced(run)


def kept_now(server: Server, document: Mapping[str, Any], seen: Snapshot, now: datetime) -> set[str]:
    """The commits that the rules of today would have kept; where there are none by now, all."""
    rules = server.rules()
    if rules is None:
        return set(seen.commits)
    today = {**document, "default_days": rules.default_days, "branch_days": dict(rules.branch_days)}
    return kept_by(today, seen, now)


def _rules(server: Server) -> GcRules:
    found = server.rules()
    if found is None:
        raise BadRequest(
            f"{server.name!r} has no rules of garbage collection; set some with `lakectl gc set-config`, "
            "or leave --rules out"
        )
    return found


def _fingerprint(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
