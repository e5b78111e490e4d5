"""A lifecycle policy as people write it down: JSON, or YAML."""

import os
from collections.abc import Mapping
from typing import Any

from desilt.domain.policy import Policy, parse
from desilt.errors import BadRequest
from desilt.jobs import documents

PolicyLike = Policy | Mapping[str, Any] | os.PathLike[str] | str
KIND = "policy"


def read_policy(text: str, *, name: str = "") -> Policy:
    """The policy in the file ``name``."""
    return parse(documents.read_document(text, kind=KIND, name=name))


def policy_of(given: PolicyLike) -> Policy:
    """A policy from a mapping, from the text of one (JSON or YAML), or from the file at a path."""
    if isinstance(given, Policy):
        return given
    if not isinstance(given, Mapping | str | os.PathLike):
        raise BadRequest(f"a policy is a mapping, a text, a path or a Policy, not {type(given).__name__}")
    return parse(documents.given_document(given, kind=KIND))


def written(policy: Policy) -> str:
    """``policy`` for people, as YAML that :func:`read_policy` reads as the same."""
    return documents.written(policy.to_json())
