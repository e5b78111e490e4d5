"""The rule by which a bucket removes what was tagged: made for a repository, looked for, and put there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from desilt.domain.units import many
from desilt.errors import BadRequest, Refused
from desilt.objects.bucket_rules import BucketRules, covering, expiry_rule, merged, scope
from desilt.objects.cloud import CloudStore
from desilt.objects.tags import ObjectTag
from desilt.repository.protocol import Repository

DAY = timedelta(days=1)
Rule = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BucketRule:
    """A rule for one repository, or a whole bucket, and all rules that the bucket has with it."""

    bucket: str
    rule: Rule
    others: int  # rules of the bucket that are not ours
    rules: tuple[Rule, ...]
    known: bool = True  # whether the bucket said which rules it has


@dataclass(frozen=True, slots=True)
class BucketFinding:
    """One thing that a look at a bucket found."""

    level: str  # ok, warning, error
    fact: str
    fix: str = ""


def bucket_rule(repository: Repository, tag: ObjectTag, wait: timedelta, *, whole_bucket: bool) -> BucketRule:
    """The rule for ``repository``, beside those that its bucket has."""
    store = bucket_of(repository)
    bucket = BucketRules(store)
    if whole_bucket and (found := bucket.strangers()):
        raise Refused(
            f"the bucket {store.bucket} holds more than this lake, such as {found[0]!r}; "
            "leave --whole-bucket out: the rule is for the lake's prefix then"
        )
    versioned = bucket.versioning() != "Off"
    prefix = "" if whole_bucket else prefix_of(repository)
    name = f"desilt-{repository.uid}" if prefix else "desilt"
    made = expiry_rule(name, prefix, tag, days_of(wait), versioned)
    rules = bucket.read()
    others = [one for one in rules if one.get("ID") != name]
    return BucketRule(store.bucket, made, len(others), tuple(merged(rules, made)))


def apply(repository: Repository, made: BucketRule) -> None:
    """Put the rule beside those that are there, and see that all of them are."""
    BucketRules(bucket_of(repository)).write(list(made.rules))


def check(repository: Repository, tag: ObjectTag) -> list[BucketFinding]:
    """What the bucket's rules make of what is tagged, and of what is not."""
    store = bucket_of(repository)
    bucket, prefix = BucketRules(store), prefix_of(repository)
    rules = bucket.read()
    found = [*_dangers(rules, prefix, tag)]
    covered = covering([one for one in rules if one not in _without_tags(rules, prefix)], prefix, tag)
    if covered:
        what = f"what is tagged {tag} below {prefix!r}"
        found.append(
            BucketFinding(
                "ok", f"rule {covered.rule!r} removes {what}, {many(covered.days or 0, 'day')} after it was made"
            )
        )
    else:
        fix = "put it there with `desilt retention bucket-rule --apply`"
        found.append(
            BucketFinding("error", f"nothing removes what is tagged {tag} below {prefix!r}: {covered.why}", fix)
        )
    return [*found, *_versions(bucket.versioning(), rules, prefix, tag)]


def prefix_of(repository: Repository) -> str:
    """Where the objects of a repository lie in its bucket: its data, and none of its metadata."""
    return f"{bucket_of(repository).root}{repository.prefix}{repository.layout.data}"


def days_of(wait: timedelta) -> int:
    """Whole days, as a bucket counts them; one at least."""
    return max(1, -(-wait // DAY))


def bucket_of(repository: Repository) -> CloudStore:
    store = repository.store
    if not isinstance(store, CloudStore) or store.tagging is None:
        raise BadRequest(
            f"{store.uri} is not an S3 bucket, and has no lifecycle rules; there, `desilt retention run` removes what "
            "has been marked for --wait itself"
        )
    return store


def _without_tags(rules: Sequence[Rule], prefix: str) -> list[Rule]:
    """Those that remove objects of the repository whether they are tagged or not."""
    found = []
    for one in rules:
        about = scope(one)
        meets = prefix.startswith(about.prefix) or about.prefix.startswith(prefix)
        if (
            one.get("Status") == "Enabled"
            and meets
            and not about.tags
            and one.get("Expiration", {}).keys() & {"Days", "Date"}
        ):
            found.append(one)
    return found


def _dangers(rules: Sequence[Rule], prefix: str, tag: ObjectTag) -> list[BucketFinding]:
    return [
        BucketFinding(
            "error",
            f"rule {one.get('ID', '')!r} removes objects of this lake, tagged or not: it loses live data",
            f"disable it at once, or let it ask for the tag {tag}",
        )
        for one in _without_tags(rules, prefix)
    ]


def _versions(versioning: str, rules: Sequence[Rule], prefix: str, tag: ObjectTag) -> list[BucketFinding]:
    """What versioning makes of it: an object that is removed stays as a version that nobody sees."""
    if versioning == "Off":
        return [BucketFinding("ok", "the bucket keeps no versions: what is removed is gone")]
    fitting = [
        one
        for one in rules
        if one.get("Status") == "Enabled"
        and "NoncurrentVersionExpiration" in one
        and prefix.startswith(scope(one).prefix)
        and scope(one).tags <= {(tag.key, tag.value)}
    ]
    if fitting:
        days = fitting[0]["NoncurrentVersionExpiration"].get("NoncurrentDays")
        fact = f"the bucket keeps versions; rule {fitting[0].get('ID', '')!r} removes old ones after {days} days"
        return [BucketFinding("ok", f"{fact}; a delete marker stays of each object")]
    fix = "put the rule there again with `desilt retention bucket-rule --apply`: it ends old versions, too"
    return [
        BucketFinding(
            "warning", "the bucket keeps versions: what is removed still takes its space, and its bytes stay", fix
        )
    ]
