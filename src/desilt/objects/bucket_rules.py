"""The lifecycle rules of a bucket: those that others made, and the one that expires what we tag.

A :data:`Rule` is as S3 writes it. Which rule is wanted, what the others come to and whether one of them does already is
decided here without asking anybody; :class:`BucketRules` reads and writes them. S3 takes all rules at once: those of
others are written again as they were, and read back.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from desilt.errors import BadRequest, StorageFailed
from desilt.objects.cloud import CloudStore
from desilt.objects.cloud_versions import versioning_of
from desilt.objects.s3_client import answer, failures, s3_client
from desilt.objects.tags import ObjectTag
from desilt.objects.versions import Versioning

Rule: TypeAlias = dict[str, Any]

OF_A_LAKE = ("repos/", "_desilt/")  # what lies at the root of a lake
SMALLEST = "TransitionDefaultMinimumObjectSize"  # a setting beside the rules, which a write would reset
READ_BACK_SECONDS = (0.0, 1.0, 2.0, 4.0, 8.0)  # S3 may show the old rules for a moment


def expiry_rule(rule_id: str, prefix: str, tag: ObjectTag, days: int, versioned: bool) -> Rule:
    """Expires what has ``tag`` below ``prefix``, ``days`` after it was made; if ``versioned``, old versions too."""
    if days < 1:
        raise BadRequest(f"a rule cannot expire objects after {days} days; S3 counts whole days from 1")
    one = {"Key": tag.key, "Value": tag.value}
    rule: Rule = {
        "ID": rule_id,
        "Filter": {"And": {"Prefix": prefix, "Tags": [one]}} if prefix else {"Tag": one},
        "Status": "Enabled",
        "Expiration": {"Days": days},
    }
    if versioned:
        rule["NoncurrentVersionExpiration"] = {"NoncurrentDays": days}
    return rule


def merged(existing: Sequence[Rule], rule: Rule) -> list[Rule]:
    """``existing`` with ``rule`` in place of the one of its ID, or behind all; the others as they are."""
    if any(one.get("ID") == rule["ID"] for one in existing):
        return [rule if one.get("ID") == rule["ID"] else one for one in existing]
    return [*existing, rule]


@dataclass(frozen=True, slots=True)
class Scope:
    """Which objects a rule is for: those that meet all of it."""

    prefix: str
    tags: frozenset[tuple[str, str]]
    more: tuple[tuple[str, Any], ...]  # sizes, and whatever else S3 may come to know


def scope(rule: Rule) -> Scope:
    """Of a rule with a filter, or of an old one with just a prefix."""
    told: dict[str, Any] = rule.get("Filter") or {}
    told = told.get("And", told)
    tags = [*told.get("Tags", []), *([told["Tag"]] if "Tag" in told else [])]
    more = tuple(sorted((name, value) for name, value in told.items() if name not in ("Prefix", "Tag", "Tags")))
    prefix = told.get("Prefix") or rule.get("Prefix") or ""
    return Scope(prefix, frozenset((tag["Key"], tag["Value"]) for tag in tags), more)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The rule that expires what is asked about, or why none does; true if there is one."""

    rule: str | None = None  # its ID
    days: int | None = None
    why: str = ""

    def __bool__(self) -> bool:
        return self.rule is not None


def covering(rules: Iterable[Rule], prefix: str, tag: ObjectTag) -> Coverage:
    """Whether a rule expires the current versions of all below ``prefix`` that have ``tag``: of several, the soonest.

    If none does, ``why`` tells what the one that comes nearest is short of.
    """
    judged = [(rule, objections(rule, prefix, tag)) for rule in rules]
    if found := [rule for rule, against in judged if not against]:
        soonest = min(found, key=lambda rule: int(rule["Expiration"]["Days"]))
        return Coverage(soonest.get("ID", ""), int(soonest["Expiration"]["Days"]))
    if not judged:
        return Coverage(why="the bucket has no lifecycle rules")

    def distance(one: tuple[Rule, list[str]]) -> tuple[bool, int]:
        return tag.key not in dict(scope(one[0]).tags), len(one[1])

    nearest, against = min(judged, key=distance)
    return Coverage(why=f"rule {nearest.get('ID', '')!r} {' and '.join(against)}")


def objections(rule: Rule, prefix: str, tag: ObjectTag) -> list[str]:
    """Why ``rule`` does not expire all below ``prefix`` that has ``tag``; nothing if it does."""
    about, found = scope(rule), []
    if rule.get("Status") != "Enabled":
        found.append("is disabled")
    if others := sorted(about.tags - {(tag.key, tag.value)}):
        found.append(f"is for what is tagged {', '.join(f'{key}={value}' for key, value in others)}, not only {tag}")
    if not prefix.startswith(about.prefix):
        found.append(f"is for keys that begin with {about.prefix!r}, not with {prefix!r}")
    if about.more:
        found.append(f"has more conditions: {', '.join(name for name, _ in about.more)}")
    if "Days" not in rule.get("Expiration", {}):
        found.append("does not expire current versions some days after they were made")
    return found


def same(one: Rule, other: Rule) -> bool:
    """Whether both do the same, however they are written; S3 names a rule that has no ID."""
    apart = {"Filter", "Prefix"} if one.get("ID") and other.get("ID") else {"Filter", "Prefix", "ID"}
    left, right = ({name: value for name, value in rule.items() if name not in apart} for rule in (one, other))
    return left == right and scope(one) == scope(other)


def unlike(rules: Sequence[Rule], others: Sequence[Rule]) -> list[Rule]:
    """Those of ``rules`` that no other does the same as."""
    return [rule for rule in rules if not any(same(rule, other) for other in others)]


class BucketRules:
    """The rules of the bucket that ``store`` is in."""

    def __init__(self, store: CloudStore) -> None:
        self.uri, self.bucket, self.root = store.uri, store.bucket, store.root

    def read(self) -> list[Rule]:
        return self._configuration()[0]

    def write(self, rules: Sequence[Rule]) -> None:
        """Puts ``rules`` in place of what is there, of which they change one at most, and sees that they are there."""
        there, settings = self._configuration()
        lost, new = unlike(there, rules), unlike(rules, there)
        if lost and not (len(lost) == len(new) == 1 and lost[0].get("ID") == new[0].get("ID")):
            raise StorageFailed(
                f"rule {lost[0].get('ID', '')!r} of the bucket of {self.uri} would be lost, which was made or changed "
                "since the rules were read; read them again, nothing was written"
            )
        with failures(self.uri, "writing the lifecycle rules of", self.bucket):
            s3_client(self.bucket).put_bucket_lifecycle_configuration(
                Bucket=self.bucket, LifecycleConfiguration={"Rules": list(rules)}, **settings
            )
        for seconds in READ_BACK_SECONDS:
            time.sleep(seconds)
            lost = unlike(rules, self.read())
            if not lost:
                return
        raise StorageFailed(
            f"rule {lost[0].get('ID', '')!r} was written to the bucket of {self.uri}, but is not there as it was "
            "written; look at the bucket's rules, somebody else may be changing them"
        )

    def versioning(self) -> Versioning:
        return versioning_of(self.bucket, self.uri)

    def strangers(self, limit: int = 3) -> list[str]:
        """Some keys of the bucket that are not below our root; at the root of a bucket, that are not of a lake."""
        found: list[str] = []
        folders = self.root.split("/")[:-1]
        for depth in range(max(len(folders), 1)):
            above = "".join(f"{folder}/" for folder in folders[:depth])
            ours = (f"{above}{folders[depth]}/",) if folders else OF_A_LAKE
            for key in self._beside(above, ours):
                if len(found) == limit:
                    return found
                found.append(key)
        return found

    def _beside(self, above: str, ours: Sequence[str]) -> Iterator[str]:
        """Keys below ``above`` and below none of ``ours``, of which nothing is read."""
        with failures(self.uri, "listing", above):
            level = s3_client(self.bucket).get_paginator("list_objects_v2")
            for page in level.paginate(Bucket=self.bucket, Prefix=above, Delimiter="/"):
                yield from (one["Key"] for one in page.get("Contents", []) if one["Key"] != above)
                for folder in (one["Prefix"] for one in page.get("CommonPrefixes", [])):
                    if folder not in ours:
                        for inner in level.paginate(Bucket=self.bucket, Prefix=folder):
                            yield from (one["Key"] for one in inner.get("Contents", []))

    def _configuration(self) -> tuple[list[Rule], dict[str, str]]:
        """The rules, and the settings that have to be written again with them."""
        from botocore.exceptions import ClientError

        with failures(self.uri, "reading the lifecycle rules of", self.bucket):
            try:
                found = s3_client(self.bucket).get_bucket_lifecycle_configuration(Bucket=self.bucket)
            except ClientError as error:
                if answer(error)[0] == "NoSuchLifecycleConfiguration":
                    return [], {}
                raise
        return list(found.get("Rules", [])), {SMALLEST: found[SMALLEST]} if found.get(SMALLEST) else {}
