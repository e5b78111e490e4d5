"""A retention document as people write it down, and the one that a repository goes by."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from desilt.domain import policy
from desilt.domain.lint import Lint
from desilt.domain.policy import KeepRule
from desilt.domain.retention import Retention, parse
from desilt.errors import BadRequest, NotFound
from desilt.jobs import documents
from desilt.jobs.rules.agreed import agreed
from desilt.records import policies
from desilt.repository.protocol import Repository

JOB = "retention"
LIFECYCLE = "lifecycle"
RetentionLike = Retention | Mapping[str, Any] | os.PathLike[str] | str


@dataclass(frozen=True, slots=True)
class KeptRetention:
    """What later runs go by."""

    retention: Retention
    created_at: datetime

    def to_json(self) -> dict[str, object]:
        """As it was in 2020: the document, and since when it counts."""
        return {**self.retention.to_json(), "creation_date": self.created_at.isoformat()}


def read_retention(text: str, *, name: str = "") -> Retention:
    """The document in the file ``name``, JSON or YAML."""
    return parse(_without_date(documents.read_document(text, kind=JOB, name=name)))


def retention_of(given: RetentionLike) -> Retention:
    """A document from a mapping, from its text (JSON or YAML), or from the file at a path."""
    if isinstance(given, Retention):
        return given
    if not isinstance(given, Mapping | str | os.PathLike):
        raise BadRequest(f"a retention document is a mapping, a text or a path, not {type(given).__name__}")
    return parse(_without_date(documents.given_document(given, kind=JOB)))


def keep(repository: Repository, retention: Retention, found: Sequence[Lint] = ()) -> KeptRetention:
    """From here on, runs go by ``retention``, which somebody wants in spite of what was ``found``."""
    _check_kind(repository)
    return KeptRetention(retention, repository.orders.set_policy(JOB, retention.to_json(), agreed(found)))


def kept(repository: Repository) -> KeptRetention:
    """What the repository's owner has set."""
    _check_kind(repository)
    with repository.records.read() as tx:
        found = policies.find(tx, repository.uid, JOB)
    if found is None:
        raise NotFound("retention of", repository.name, "set one with `desilt retention set`, or pass --config")
    return KeptRetention(parse(found.document), found.set_at)


def _check_kind(repository: Repository) -> None:
    if reason := repository.refuses.get(JOB):
        raise BadRequest(reason)


def keep_rules(repository: Repository) -> tuple[KeepRule, ...]:
    """What the lifecycle policy of the repository says never to remove: it counts here as well."""
    with repository.records.read() as tx:
        found = policies.find(tx, repository.uid, LIFECYCLE)
    return policy.parse(found.document).keep if found else ()


def _without_date(document: object) -> object:
    """What `desilt retention get` prints can be set again."""
    if isinstance(document, Mapping):
        return {name: value for name, value in document.items() if name != "creation_date"}
    return document
