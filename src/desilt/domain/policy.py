"""What a repository's owner wants removed, and what must stay.

A :class:`Policy` is what people write: prefixes, day counts, branches. :func:`parse`
reads it, and refuses whatever it does not know by name: a word that is misspelt
and passed over would delete, or keep, what nobody asked for.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from desilt.domain.document import bad, days, fields, flag, items, nearest, shown, text

ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
TOP = ("rules", "tags", "noncurrent_only", "keep", "branches", "description")
OF_RULE = ("prefix", "days", "enabled", "branch_days", "noncurrent_only")
OF_KEEP = ("id", "prefix", "glob")
OF_BRANCH = ("match", "idle_days", "max_age_days")


class Tags(StrEnum):
    HOLD = "hold"  # what a tag reaches stays
    IGNORE = "ignore"  # a tag does not stop a rule; a commit that no branch reaches holds all the same


@dataclass(frozen=True, slots=True)
class Rule:
    """Entries whose path begins with ``prefix`` go once they are older than their branch's days."""

    id: str
    prefix: str  # a plain string; "" is everything
    days: int | None  # None: only the branches of branch_days are covered
    enabled: bool = True
    branch_days: Mapping[str, int] = field(default_factory=dict, hash=False)  # names or globs
    noncurrent_only: bool = False  # what is in the branch's head stays


@dataclass(frozen=True, slots=True)
class KeepRule:
    """Paths that no rule removes. Either a plain prefix or a glob, in which ``*`` crosses slashes too."""

    id: str
    prefix: str | None = None
    glob: str | None = None

    def holds(self, path: str) -> bool:
        return path.startswith(self.prefix) if self.prefix is not None else fnmatchcase(path, self.glob or "")


@dataclass(frozen=True, slots=True)
class BranchRule:
    """Branches that go once nobody has moved them for a while, or once they are old."""

    match: str  # a glob
    idle_days: int | None = None
    max_age_days: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    rules: tuple[Rule, ...]
    tags: Tags = Tags.HOLD
    keep: tuple[KeepRule, ...] = ()
    branches: tuple[BranchRule, ...] = ()
    description: str = ""  # for people: no part of the fingerprint

    @property
    def fingerprint(self) -> str:
        """Equal for documents that mean the same, in whatever order and spelling."""
        said = {name: value for name, value in self.to_json().items() if name != "description"}
        for name in ("keep", "branches"):
            said[name] = sorted(json.dumps(one, sort_keys=True) for one in items(name, said[name]))
        return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def to_json(self) -> dict[str, object]:
        """A document that :func:`parse` reads as this policy."""
        return {
            **({"description": self.description} if self.description else {}),
            "rules": {rule.id: _said(rule, OF_RULE) for rule in self.rules},
            "tags": self.tags.value,
            "keep": [_said(keep, OF_KEEP) for keep in self.keep],
            "branches": [_said(rule, OF_BRANCH) for rule in self.branches],
        }


def parse(document: object) -> Policy:
    """The policy that ``document`` says: rules by id, at the top or below ``rules``, beside the words of ``TOP``."""
    said = fields("policy", document)
    rules = {name: body for name, body in said.items() if name not in TOP}
    if "rules" in said:
        if rules:
            fix = f"did you mean {near!r}?" if (near := nearest(min(rules), TOP)) else "put all rules below 'rules'"
            raise bad("policy", f"{min(rules)!r} is beside 'rules'", fix)
        rules = dict(fields("rules", said["rules"]))
    noncurrent_only = flag("policy", said, "noncurrent_only", default=False)
    tags = said.get("tags", Tags.HOLD.value)
    if not isinstance(tags, str) or tags not in set(Tags):
        raise bad("policy", f"tags is {shown(tags)}", "write 'hold' or 'ignore'")
    policy = Policy(
        rules=tuple(_rule(name, body, noncurrent_only) for name, body in rules.items()),
        tags=Tags(tags),
        keep=_keeps(said.get("keep", []), taken=set(rules)),
        branches=_branch_rules(said.get("branches", [])),
        description=text("policy", said, "description") or "",
    )
    if not policy.rules and not policy.branches:
        raise bad("policy", "it has no rules", 'write one such as {"old": {"prefix": "tmp/", "days": 30}}')
    return policy


def _rule(name: str, body: object, noncurrent_only: bool) -> Rule:
    where = f"rule {shown(name)}"
    if not isinstance(body, Mapping) and (near := nearest(name, TOP)):
        raise bad(where, f"it is {shown(body)}, not a rule", f"did you mean {near!r}?")
    said = fields(where, body, OF_RULE)
    _check_id(where, name)
    prefix = text(where, said, "prefix")
    if prefix is None:
        raise bad(where, "it has no prefix", 'write one; "" is everything')
    place = f"{where}, branch_days"
    written = fields(place, said.get("branch_days", {}))
    rule = Rule(
        id=name,
        prefix=prefix,
        days=days(where, said, "days"),
        enabled=flag(where, said, "enabled", default=True),
        branch_days={branch: count for branch in written if (count := days(place, written, branch)) is not None},
        noncurrent_only=flag(where, said, "noncurrent_only", default=noncurrent_only),
    )
    if rule.days is None and not rule.branch_days:
        raise bad(where, "it has neither days nor branch_days", "write days, or branch_days with at least one branch")
    return rule


def _keeps(value: object, taken: set[str]) -> tuple[KeepRule, ...]:
    found: list[KeepRule] = []
    for number, body in enumerate(items("keep", value), 1):
        where = f"keep {number}"
        said = fields(where, body, OF_KEEP)
        name = _check_id(where, text(where, {"id": f"keep-{number}", **said}, "id") or "")
        prefix, glob = text(where, said, "prefix"), text(where, said, "glob")
        if (prefix is None) == (glob is None):
            fact = "it has neither prefix nor glob" if prefix is None else "it has both prefix and glob"
            raise bad(where, fact, "write one of them")
        if name in taken:
            raise bad(where, f"the id {name!r} is taken", "give it an id of its own")
        taken.add(name)
        found.append(KeepRule(name, prefix, glob))
    return tuple(found)


def _branch_rules(value: object) -> tuple[BranchRule, ...]:
    found: list[BranchRule] = []
    for number, body in enumerate(items("branches", value), 1):
        where = f"branches {number}"
        said = fields(where, body, OF_BRANCH)
        match = text(where, said, "match")
        if not match:
            raise bad(where, "it has no match", "write the name of a branch, or a glob such as 'dev-*'")
        rule = BranchRule(match, days(where, said, "idle_days"), days(where, said, "max_age_days"))
        if rule.idle_days is None and rule.max_age_days is None:
            raise bad(where, "it has neither idle_days nor max_age_days", "write at least one of them")
        found.append(rule)
    return tuple(found)


def _check_id(where: str, name: str) -> str:
    if not ID.fullmatch(name):
        raise bad(where, f"{shown(name)} cannot be an id", "use 1 to 64 letters, digits, '.', '_' and '-'")
    return name


def _said(value: object, names: Iterable[str]) -> dict[str, object]:
    facts = {name: getattr(value, name) for name in names}
    return {name: dict(fact) if isinstance(fact, Mapping) else fact for name, fact in facts.items() if fact is not None}
