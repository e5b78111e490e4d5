"""Tags of objects in an S3 bucket, and copies that have none.

S3 replaces all tags of an object at once. They are read first and the others written again with ours: who changes
them in the same moment may be overruled.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from desilt.errors import DesiltError, NotFound, StorageFailed
from desilt.objects.cloud_removal import few_by_few, is_answer, not_tried
from desilt.objects.s3_client import MISSING, answer, encryption, failures, s3_client
from desilt.objects.store import check_key, nothing
from desilt.objects.tags import ObjectTag, TagOutcome, TagResult

MOST_TAGS = 10


class CloudTags:
    """Tags of the objects of one bucket, below ``root``, which is empty or ends in a slash."""

    def __init__(self, bucket: str, root: str) -> None:
        self.bucket, self.root = bucket, root
        self.uri = f"s3://{bucket}/{root}".rstrip("/")

    def tag_many(
        self, keys: Sequence[str], tag: ObjectTag, *, between: Callable[[], None] = nothing
    ) -> list[TagOutcome]:
        return self._each(keys, partial(self._tag, tag=tag), between)

    def untag_many(
        self, keys: Sequence[str], tag: ObjectTag, *, between: Callable[[], None] = nothing
    ) -> list[TagOutcome]:
        return self._each(keys, partial(self._untag, tag=tag), between)

    def tagless(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> list[TagOutcome]:
        return self._each(keys, self._look, between)

    def _each(
        self, keys: Sequence[str], act: Callable[[str], TagOutcome], between: Callable[[], None]
    ) -> list[TagOutcome]:
        once = list(dict.fromkeys(check_key(key) for key in keys))  # two at once would overrule each other
        known = dict(zip(once, few_by_few(once, partial(asked, act), untried, between), strict=True))
        told = []
        for key in keys:
            told.append(known[key])
            if known[key].result is TagResult.UNTAGGED:
                known[key] = TagOutcome(key, TagResult.BARE)
        return told

    def _tag(self, key: str, tag: ObjectTag) -> TagOutcome:
        tags = self._read(key)
        if tags.get(tag.key) != tag.value:
            if len(tags.keys() - {tag.key}) >= MOST_TAGS:
                why = f"{key!r} in {self.uri} has {MOST_TAGS} other tags, and S3 allows no more; remove one of them"
                return TagOutcome(key, TagResult.FAILED, why)
            self._write(key, {**tags, tag.key: tag.value})
        return TagOutcome(key, TagResult.TAGGED)

    def _untag(self, key: str, tag: ObjectTag) -> TagOutcome:
        tags = self._read(key)
        if tags.pop(tag.key, None) is None:
            return TagOutcome(key, TagResult.BARE)
        self._write(key, tags)
        return TagOutcome(key, TagResult.UNTAGGED)

    def _look(self, key: str) -> TagOutcome:
        return TagOutcome(key, TagResult.TAGGED if self._read(key) else TagResult.BARE)

    def _read(self, key: str) -> dict[str, str]:
        with self._failures("reading the tags of", key):
            found = s3_client(self.bucket).get_object_tagging(Bucket=self.bucket, Key=self.root + key)
        if "TagSet" not in found:  # taken for an object without tags, it would lose those of others
            raise StorageFailed(f"{self.uri} does not say what tags {key!r} has; check that the endpoint is one of S3")
        return {tag["Key"]: tag["Value"] for tag in found["TagSet"]}

    def _write(self, key: str, tags: dict[str, str]) -> None:
        client, place = s3_client(self.bucket), {"Bucket": self.bucket, "Key": self.root + key}
        with self._failures("tagging", key):
            if tags:
                rows = [{"Key": name, "Value": value} for name, value in tags.items()]
                client.put_object_tagging(**place, Tagging={"TagSet": rows})
            else:
                client.delete_object_tagging(**place)

    @contextmanager
    def _failures(self, doing: str, key: str) -> Iterator[None]:
        """NotFound if there is no object, which a server may say in several ways."""
        from botocore.exceptions import ClientError

        with failures(self.uri, doing, key):
            try:
                yield
            except ClientError as error:
                code, status = answer(error)
                if status in (404, 405) and code != "NoSuchBucket" and (code in MISSING or self._is_missing(key)):
                    raise NotFound("object", key) from error
                raise

    def _is_missing(self, key: str) -> bool:
        """Asked where it is not clear whether a server misses the object, or does not know of tags."""
        from botocore.exceptions import ClientError

        try:
            place = {"Bucket": self.bucket, "Key": self.root + key}
            s3_client(self.bucket).get_object(**place, Range="bytes=0-0")["Body"].close()
        except ClientError as error:
            return answer(error)[0] in MISSING
        return False


def asked(act: Callable[[str], TagOutcome], key: str) -> tuple[TagOutcome, bool]:
    """The outcome, and whether the store gave an answer; a refusal is one."""
    try:
        return act(key), True
    except NotFound:
        return TagOutcome(key, TagResult.GONE), True
    except DesiltError as error:
        return TagOutcome(key, TagResult.FAILED, str(error)), is_answer(error)


def untried(key: str, last: TagOutcome) -> TagOutcome:
    return TagOutcome(key, TagResult.FAILED, not_tried(last.detail))


def copy_without_tags(bucket: str, source: str, destination: str) -> None:
    """The bytes and the metadata; by itself, S3 would copy the tags too."""
    s3_client(bucket).copy_object(
        Bucket=bucket,
        Key=destination,
        CopySource={"Bucket": bucket, "Key": source},
        MetadataDirective="COPY",
        TaggingDirective="REPLACE",
        **encryption(),
    )
