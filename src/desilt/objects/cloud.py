"""Objects in a bucket: S3 and what speaks like it, Azure Blob Storage, Google Cloud Storage.

All three through `obstore`, by the usual environment variables:
``AWS_ACCESS_KEY_ID``, ``AWS_PROFILE``, ``AWS_ENDPOINT_URL`` and their kin,
``AZURE_STORAGE_ACCOUNT_NAME``, ``GOOGLE_SERVICE_ACCOUNT`` and theirs. Google's
is untested. On S3 tags, versions, copies and bulk deletes are left to `boto3`: a copy by obstore
would take the tags along, and it does not tell what a bulk delete left out.

An upload that is cut off leaves no object, but its parts may stay behind unseen
and cost money: give the bucket a rule that aborts incomplete uploads. In a
bucket with versioning, a removed object stays as an old version, below a marker
that hides it: either ``versions`` ends those, or another rule of the bucket has to.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PreconditionError

from desilt.errors import StorageFailed
from desilt.objects.aws import is_set
from desilt.objects.body import Watched, asked_elsewhere, drained
from desilt.objects.buckets import Client, connect, failure, first_line
from desilt.objects.cloud_conditional import CloudConditional
from desilt.objects.cloud_listing import Behind, before, flat, must_walk, one_level, regrouped, walk
from desilt.objects.cloud_removal import apart, each_alone, not_tried, repeated
from desilt.objects.cloud_tags import CloudTags, copy_without_tags
from desilt.objects.cloud_versions import CloudVersions
from desilt.objects.conditional import ConditionalPuts
from desilt.objects.parts import CloudParts, UploadedInParts
from desilt.objects.removal import check_pairs
from desilt.objects.s3_client import failures
from desilt.objects.s3_listing import keys_behind
from desilt.objects.s3_removal import BulkAnswer, delete_in_bulk
from desilt.objects.store import ObjectInfo, Outcome, Outcomes, Result, check_key, check_prefix, check_range, nothing
from desilt.objects.tags import Tagging
from desilt.objects.versions import ObjectVersions

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult

PART_BYTES = 16 << 20  # S3 takes 10,000 parts: an object may have 156 GiB
PARTS_AT_ONCE = 2
READ_BYTES = 8 << 20
COPY_LIMIT = {"s3": 5 << 30, "gs": 5 << 30, "az": 256 << 20}  # the most that one server-side copy may move
DELETE_BATCH = {"s3": 1000, "gs": 1000, "az": 256}
FAILURES = (BaseError, FileNotFoundError, ValueError)


class CloudStore:
    """Objects of one bucket, below one prefix."""

    moves_cheaply = False

    def __init__(self, scheme: str, bucket: str, prefix: str = "") -> None:
        self.scheme, self.bucket = scheme, bucket
        self.delete_batch = DELETE_BATCH[scheme]
        self.root = f"{prefix}/" if prefix else ""
        self.uri = f"{scheme}://{bucket}" + (f"/{prefix}" if prefix else "")
        try:
            self.client = connect(scheme, bucket)
        except (BaseError, ValueError) as error:
            raise StorageFailed(
                f"cannot open {self.uri}: {first_line(error)}; check the environment variables"
            ) from error

    def put(self, key: str, body: Iterable[bytes]) -> int:
        at, about = self._at(key), self._attributes()
        source = Watched(body)
        start: list[bytes] = []
        for chunk in source:
            start.append(chunk)
            if source.size >= PART_BYTES:
                break
        try:
            with self._failures("writing", key):
                if source.size < PART_BYTES:
                    obstore.put(self.client, at, b"".join(start), attributes=about, use_multipart=False)
                else:
                    parts = chain(drained(start), asked_elsewhere(source))
                    size, at_once = PART_BYTES, PARTS_AT_ONCE
                    obstore.put(self.client, at, parts, attributes=about, chunk_size=size, max_concurrency=at_once)
        except Exception:
            if source.error is not None:  # the body's own error is the caller's, and passes as it is
                raise source.error from None
            raise
        return source.size

    def put_new(self, key: str, body: bytes) -> bool:
        with self._failures("writing", key):
            try:
                about = self._attributes()
                obstore.put(self.client, self._at(key), body, attributes=about, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    def get(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        return b"".join(self.stream(key, start=start, length=length))

    def stream(self, key: str, *, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """One request for each chunk: a slow reader never holds a connection open until it times out."""
        check_range(start, length)
        version: str | None = None
        end = start + READ_BYTES if length is None else start + length
        while start < end:
            with self._failures("reading", key):
                answer = self._read(key, start, min(end, start + READ_BYTES), version)
                if answer is None:
                    return
                chunk = bytes(answer.bytes())
                version, size = answer.meta["e_tag"], answer.meta["size"]
            yield chunk
            start += len(chunk)
            end = size if length is None else min(end, size)
        if length == 0:
            self.head(key)  # nothing to read, but it has to be there

    def _read(self, key: str, start: int, end: int, version: str | None) -> "GetResult | None":
        """One range, or None if it begins past the end: there a store answers with an error."""
        options: GetOptions = {"range": (start, end)}
        if version:
            options["if_match"] = version
        try:
            return obstore.get(self.client, self._at(key), options=options)
        except PreconditionError as error:
            raise StorageFailed(f"{key!r} in {self.uri} was replaced while it was read; read it again") from error
        except BaseError as error:
            past_the_end = any(sign in first_line(error) for sign in ("416 Range", "Wanted range"))
            if past_the_end and start >= self.head(key).size:
                return None
            raise

    def head(self, key: str) -> ObjectInfo:
        with self._failures("looking at", key):
            try:
                found = obstore.head(self.client, self._at(key))
            except (FileNotFoundError, GenericError) as error:
                if not isinstance(error, FileNotFoundError) and "400 Bad Request" not in first_line(error):
                    raise
                # a HEAD has no body to say whether the object or the whole bucket is missing, or why; a GET does
                found = obstore.get(self.client, self._at(key)).meta
        return ObjectInfo(key, found["size"], found["last_modified"])

    def copy(self, source: str, destination: str) -> None:
        check_key(destination)
        if self.head(source).size > COPY_LIMIT[self.scheme]:
            self.put(destination, self.stream(source))
            return
        if self.scheme == "s3":
            with failures(self.uri, "copying", source):
                copy_without_tags(self.bucket, self._at(source), self._at(destination))
            return
        with self._failures("copying", source):
            obstore.copy(self.client, self._at(source), self._at(destination))

    def folders(self, folder: str = "") -> Sequence[str]:
        check_prefix(folder)
        with self._failures("listing", folder):
            found = one_level(self.client, self.root + folder, self._behind)
        return sorted(each.removeprefix(self.root).rstrip("/") + "/" for each in found["common_prefixes"])

    def list(self, prefix: str = "", *, after: str = "", until: str = "") -> Iterator[pa.RecordBatch]:
        folder, behind = check_prefix(prefix).rpartition("/")[0], self._behind
        with self._failures("listing", prefix):
            if must_walk(self.scheme):
                found = walk(self.client, self.root, folder and folder + "/", prefix, after, until, behind=behind)
            else:
                found = flat(self.client, self.root, prefix, after, behind=behind)
            yield from regrouped(before(found, until))

    def delete_many(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> Outcomes:
        """As promised; but where a bulk call failed half-way, Azure cannot tell what it removed from what was gone."""
        at = {key: self._at(key) for key in keys}  # all are checked before any goes, and each is asked for once
        between()
        has_bulk = self.scheme == "az" or (self.scheme == "s3" and not is_set("AWS_DISABLE_BULK_DELETE"))
        told = self._delete_in_bulk(at, between) if has_bulk else {}
        if left := [key for key in at if key not in told]:
            client = connect(self.scheme, self.bucket, bulk=False)
            alone = each_alone([(key, partial(self._delete, client, key)) for key in left], between)
            told |= {outcome.key: outcome for outcome in alone}
        return repeated(keys, told.values())

    def move_many(self, pairs: Sequence[tuple[str, str]], *, between: Callable[[], None] = nothing) -> Outcomes:
        check_pairs(pairs)
        if apart(pairs):
            return self._move(pairs, between)
        return [outcome for pair in pairs for outcome in self._move([pair], between)]

    @property
    def tagging(self) -> Tagging | None:
        return CloudTags(self.bucket, self.root) if self.scheme == "s3" else None

    @property
    def versions(self) -> ObjectVersions | None:
        return CloudVersions(self.bucket, self.root) if self.scheme == "s3" else None

    @property
    def parts(self) -> UploadedInParts | None:
        return CloudParts(self.client, self.root, self.uri) if self.scheme == "s3" else None

    @property
    def conditional(self) -> ConditionalPuts:
        return CloudConditional(self.client, self._at, self._failures, self._attributes())

    @property
    def _behind(self) -> Behind | None:
        return partial(keys_behind, self.bucket) if self.scheme == "s3" else None

    def _delete_in_bulk(self, at: Mapping[str, str], between: Callable[[], None]) -> dict[str, Outcome]:
        """What became of those keys that bulk calls tell of; ``at`` says where each is."""
        keys, told = [*at], dict[str, Outcome]()
        for first in range(0, len(keys), self.delete_batch):
            between()
            some = keys[first : first + self.delete_batch]
            said = self._delete_some([at[key] for key in some])
            if said is None:
                break
            if said.silent:
                told |= {key: Outcome(key, Result.FAILED, said.silent) for key in some}
                more = keys[first + len(some) :]
                return told | {key: Outcome(key, Result.FAILED, not_tried(said.silent), tried=False) for key in more}
            told |= {key: Outcome(key, Result.REMOVED) for key in some if at[key] in said.removed}
            told |= {key: self._busy(key, said.busy[at[key]]) for key in some if at[key] in said.busy}
        return told

    def _delete_some(self, places: Sequence[str]) -> BulkAnswer | None:
        """By one request; None if nothing came of it but that each may be asked for alone."""
        if self.scheme == "s3":
            return delete_in_bulk(self.bucket, places)
        try:
            obstore.delete(self.client, [*places])
        except FAILURES:
            return None
        return BulkAnswer(frozenset(places))

    def _busy(self, key: str, code: str) -> Outcome:
        why = f"removing {key!r} in {self.uri} failed: {code}; the store has no time for so much, try again later"
        return Outcome(key, Result.FAILED, why)

    def _delete(self, client: Client, key: str) -> None:
        with self._failures("removing", key):
            try:
                obstore.delete(client, self._at(key))
            except FileNotFoundError as error:
                self.head(key)  # tells a missing object from a missing bucket, which Azure's answer here does not
                raise StorageFailed(f"{key!r} in {self.uri} was said to be gone, but is there; try again") from error

    def _move(self, pairs: Sequence[tuple[str, str]], between: Callable[[], None]) -> Outcomes:
        copies = [(source, partial(self._place, source, destination)) for source, destination in pairs]
        outcomes = each_alone(copies, between)
        placed = [number for number, outcome in enumerate(outcomes) if outcome.result is Result.REMOVED]
        gone = self.delete_many([pairs[each][0] for each in placed], between=between)
        for number, outcome in zip(placed, gone, strict=True):
            if outcome.result is Result.FAILED:  # gone is well: it is at the second key
                outcomes[number] = outcome
        return outcomes

    def _place(self, source: str, destination: str) -> None:
        """A copy that is seen to be there: the source goes next."""
        size = self.head(source).size
        self.copy(source, destination)
        if self.head(destination).size != size:
            raise StorageFailed(f"the copy of {source!r} at {destination!r} in {self.uri} is cut off; move it again")

    def _attributes(self) -> dict[str, str] | None:
        """What objects carry besides their bytes."""
        return None

    def _at(self, key: str) -> str:
        return self.root + check_key(key)

    @contextmanager
    def _failures(self, doing: str, key: str) -> Iterator[None]:
        try:
            yield
        except FAILURES as error:
            raise failure(self.uri, doing, key, error) from error

    def __reduce__(self) -> tuple[type["CloudStore"], tuple[str, str, str]]:
        return CloudStore, (self.scheme, self.bucket, self.root.rstrip("/"))  # the environment opens it there
