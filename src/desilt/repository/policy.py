"""Whether verdicts are still what the repository's owner wants, and what they went by."""

from collections.abc import Mapping
from typing import Any

from desilt.domain import moved, policy, retention
from desilt.domain.moved import Manner
from desilt.domain.retention import Retention
from desilt.errors import PolicyReplaced
from desilt.records import policies
from desilt.records.database import Transaction
from desilt.repository.gate import Reliance, Rules

LIFECYCLE, RETENTION = "lifecycle", "retention"


def check_policy(tx: Transaction, repository: str, run: str, relies_on: Reliance) -> None:
    """Refuse to go on with what was judged by the policy of a repository, once another one is set."""
    rules = relies_on.rules
    if rules is None or (rules.given and rules.job != RETENTION):
        return  # beside a retention document, keep rules of another count
    kept = policies.find(tx, repository, rules.job)
    document = rules.document if rules.given else kept.document if kept else None
    if document is None or _fingerprint(tx, repository, rules.job, document) != rules.fingerprint:
        raise PolicyReplaced(run)


def manner(rules: Rules) -> Manner:
    """How verdicts by ``rules`` looked at branches and tags."""
    if rules.job == RETENTION:
        return moved.of_retention(retention.parse(rules.document))
    return moved.of_policy(policy.parse(rules.document))


def expiring_staged(rules: Rules | None) -> Retention | None:
    """The document by which staged entries may expire; None: what is staged is held."""
    return retention.parse(rules.document) if rules is not None and rules.job == RETENTION else None


def _fingerprint(tx: Transaction, repository: str, job: str, document: Mapping[str, Any]) -> str:
    if job != RETENTION:
        return policy.parse(document).fingerprint
    kept = policies.find(tx, repository, LIFECYCLE)
    return retention.parse(document).fingerprint(policy.parse(kept.document).keep if kept else ())
