"""Versions of the objects of an S3 bucket: one listing for each key, and removal by the id of each version.

S3 lists versions by prefix, in order of keys: whatever else begins like the key that is asked for comes behind it,
and is passed over.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from desilt.errors import DesiltError, StorageFailed
from desilt.objects.cloud_removal import few_by_few, is_answer, not_tried
from desilt.objects.s3_client import REMOVALS, failures, s3_client
from desilt.objects.store import check_key, nothing
from desilt.objects.versions import KeyVersions, Version, Versioning, VersionOutcome

REMOVED_AT_ONCE = 1000  # S3 takes no more
UNSAID = "the store does not say that it is gone"  # an answer without a body reads like one without errors


class CloudVersions:
    """Versions of the objects of one bucket, below ``root``, which is empty or ends in a slash."""

    def __init__(self, bucket: str, root: str) -> None:
        self.bucket, self.root = bucket, root
        self.uri = f"s3://{bucket}/{root}".rstrip("/")

    def versioning(self) -> Versioning:
        try:
            return versioning_of(self.bucket, self.uri)
        except DesiltError:
            return Versioning.UNKNOWN

    def list_versions(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> list[KeyVersions]:
        once = list(dict.fromkeys(check_key(key) for key in keys))
        known = dict(zip(once, few_by_few(once, self._asked, unlisted, between), strict=True))
        return [known[key] for key in keys]

    def remove_versions(
        self, versions: Sequence[Version], *, between: Callable[[], None] = nothing
    ) -> list[VersionOutcome]:
        for one in versions:
            check_key(one.key)
        told: list[VersionOutcome] = []
        for at in range(0, len(versions), REMOVED_AT_ONCE):
            between()
            told += self._remove(versions[at : at + REMOVED_AT_ONCE])
        return told

    def _asked(self, key: str) -> tuple[KeyVersions, bool]:
        """What there is of ``key``, and whether the store gave an answer; a refusal is one."""
        try:
            return KeyVersions(key, tuple(self._listed(key))), True
        except DesiltError as error:
            return KeyVersions(key, error=str(error)), is_answer(error)

    def _listed(self, key: str) -> Iterator[Version]:
        at, more = self.root + key, dict[str, str]()
        while True:
            with failures(self.uri, "listing the versions of", key):
                page = s3_client(self.bucket).list_object_versions(Bucket=self.bucket, Prefix=at, **more)
            for name in ("Versions", "DeleteMarkers"):
                yield from (self._version(key, row, name) for row in page.get(name, []) if row["Key"] == at)
            if "IsTruncated" not in page:  # of an answer without a body, boto3 makes one that says nothing
                raise StorageFailed(f"{self.uri} does not say which versions {key!r} has; try again later")
            if not page["IsTruncated"]:
                return
            more = self._next(key, page, more)
            if more["KeyMarker"] > at:  # all that follow are of other keys
                return

    def _version(self, key: str, row: dict[str, Any], of: str) -> Version:
        if not row.get("VersionId"):  # without one, S3 would take it for the object itself
            raise StorageFailed(f"{self.uri} has a version of {key!r} without an id; check that the endpoint is of S3")
        is_marker, is_latest = of == "DeleteMarkers", row.get("IsLatest") is True
        return Version(key, row["VersionId"], row.get("Size", 0), row["LastModified"], is_marker, is_latest)

    def _next(self, key: str, page: dict[str, Any], before: dict[str, str]) -> dict[str, str]:
        """Where the next page begins; a server that does not say so, or says the same again, has not told all."""
        names = {"KeyMarker": "NextKeyMarker", "VersionIdMarker": "NextVersionIdMarker"}
        more = {name: page[told] for name, told in names.items() if page.get(told)}
        within = more.get("KeyMarker") == self.root + key and "VersionIdMarker" not in more
        if "KeyMarker" not in more or within or more == before:
            raise StorageFailed(f"{self.uri} does not tell all versions of {key!r}; check that the endpoint is of S3")
        return more

    def _remove(self, versions: Sequence[Version]) -> list[VersionOutcome]:
        rows = [{"Key": self.root + one.key, "VersionId": one.id} for one in versions]
        try:
            with failures(self.uri, "removing versions of", versions[0].key):
                client = s3_client(self.bucket, attempts=REMOVALS)
                answer = client.delete_objects(Bucket=self.bucket, Delete={"Objects": rows})
        except DesiltError as error:  # whether any went is not known
            return [VersionOutcome(one, str(error)) for one in versions]
        wrong = {(row.get("Key"), row.get("VersionId")): row for row in answer.get("Errors", [])}
        known = {(row["Key"], version) for row in rows for version in (row["VersionId"], None, "")}
        stray = next((row for name, row in wrong.items() if name not in known), None)  # may be of any of them
        gone = {(row.get("Key"), row.get("VersionId")) for row in answer.get("Deleted", [])}
        told = [(one, refusal(wrong, self.root + one.key, one.id, stray)) for one in versions]
        return [
            VersionOutcome(one, why or ("" if (self.root + one.key, one.id) in gone else UNSAID)) for one, why in told
        ]


def versioning_of(bucket: str, uri: str) -> Versioning:
    """Whether ``bucket`` keeps versions, if it says so."""
    with failures(uri, "reading the versioning of", bucket):
        status = s3_client(bucket).get_bucket_versioning(Bucket=bucket).get("Status")
    return Versioning(status) if status in (Versioning.ENABLED, Versioning.SUSPENDED) else Versioning.OFF


def unlisted(key: str, last: KeyVersions) -> KeyVersions:
    return KeyVersions(key, error=not_tried(last.error))


def refusal(
    wrong: dict[tuple[Any, Any], dict[str, Any]], key: str, version_id: str, stray: dict[str, Any] | None
) -> str:
    """Why a version was not removed; one that names no version speaks for all of its key, a ``stray`` one for all."""
    row = wrong.get((key, version_id)) or wrong.get((key, None)) or wrong.get((key, "")) or stray
    return f"{row.get('Code', '')}: {row.get('Message', '')}".strip(": ") or "it was refused" if row else ""
