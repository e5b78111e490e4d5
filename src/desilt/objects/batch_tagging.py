"""Tagging millions of objects by S3 Batch Operations: a list of keys goes up, S3 tags them, a report comes back.

Such a job puts our tag in place of *all* tags that an object has: it is for objects that have no others, which
:meth:`~desilt.objects.tags.Tagging.tagless` tells.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote, unquote_plus

from desilt.errors import BadRequest, DesiltError, NotFound, StorageFailed
from desilt.objects.cloud import CloudStore
from desilt.objects.s3_client import answer, failures, s3_client, s3control_client, unanswered
from desilt.objects.tags import ObjectTag, TagOutcome, TagResult

PRIORITY = 10
LINES = 10_000  # of a list that are put together at a time
OVER = frozenset({"Complete", "Failed", "Cancelled"})
COLUMNS = "Bucket, Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode, ResultMessage"
GONE = frozenset({"404", "NoSuchKey", "NoSuchVersion", "NotFound"})
ROLE = re.compile(r"arn:([a-z-]+):iam::\d{12}:role/.+")


def manifest(bucket: str, keys: Iterable[str]) -> bytes:
    """The list that S3 takes: a line for each of ``keys``, which are whole and need no quotes once encoded."""
    return "".join(f"{bucket},{quote(key, safe='/')}\n" for key in keys).encode()


def job_request(
    bucket: str,
    *,
    manifest_key: str,
    etag: str,
    tag: ObjectTag,
    report_prefix: str,
    role_arn: str,
    token: str,
    priority: int = PRIORITY,
) -> dict[str, Any]:
    """What ``create_job`` is asked, besides for whom; keys are whole. The same ``token`` again makes no other job."""
    of_bucket = f"arn:{partition(role_arn)}:s3:::{bucket}"
    return {
        "ConfirmationRequired": False,
        "Operation": {"S3PutObjectTagging": {"TagSet": [{"Key": tag.key, "Value": tag.value}]}},
        "Manifest": {
            "Spec": {"Format": "S3BatchOperations_CSV_20180820", "Fields": ["Bucket", "Key"]},
            "Location": {"ObjectArn": f"{of_bucket}/{manifest_key}", "ETag": etag.strip('"')},
        },
        "Report": {
            "Bucket": of_bucket,
            "Format": "Report_CSV_20180820",
            "Enabled": True,
            "Prefix": report_prefix.rstrip("/"),
            "ReportScope": "AllTasks",
        },
        "Priority": priority,
        "RoleArn": role_arn,
        "ClientRequestToken": token,
    }


def check_account(account_id: str, role_arn: str) -> None:
    """Refuse what is no account, or no role."""
    if not re.fullmatch(r"\d{12}", account_id):
        raise BadRequest(f"{account_id!r} is not an AWS account; write its twelve digits")
    partition(role_arn)


def partition(role_arn: str) -> str:
    """Which of AWS's worlds a role is in; ``aws`` but for China and some governments."""
    found = ROLE.fullmatch(role_arn)
    if found is None:
        raise BadRequest(f"{role_arn!r} is not a role; write arn:aws:iam::123456789012:role/NAME")
    return found[1]


@dataclass(frozen=True, slots=True)
class JobStatus:
    """How far a job is, in S3's words."""

    state: str
    total: int = 0
    succeeded: int = 0
    failed: int = 0
    why: str = ""  # of a job that failed, or waits: in one line

    @property
    def over(self) -> bool:
        return self.state in OVER


class BatchJobs:
    """Jobs on objects of ``store``, in one account and with the rights of one role; keys are those of the store."""

    def __init__(self, store: CloudStore, account_id: str, role_arn: str) -> None:
        check_account(account_id, role_arn)
        self.store, self.account_id, self.role_arn = store, account_id, role_arn

    def write_manifest(self, manifest_key: str, keys: Iterable[str]) -> str:
        """Puts the list of ``keys`` there; its ETag, by which a job knows that it is still the same."""
        whole, bucket = (self.store.root + key for key in keys), self.store.bucket
        self.store.put(manifest_key, (manifest(bucket, some) for some in iter(lambda: list(islice(whole, LINES)), [])))
        with failures(self.store.uri, "looking at", manifest_key):
            found = s3_client(bucket).head_object(Bucket=bucket, Key=self.store.root + manifest_key)
        return str(found["ETag"]).strip('"')

    def create(self, manifest_key: str, etag: str, tag: ObjectTag, report_prefix: str, token: str) -> str:
        """Starts a job, and gives its id; the one there is, if ``token`` made one before."""
        request = job_request(
            self.store.bucket,
            manifest_key=self.store.root + manifest_key,
            etag=etag,
            tag=tag,
            report_prefix=self.store.root + report_prefix,
            role_arn=self.role_arn,
            token=token,
        )
        with failures(self.store.uri, "making a batch job of", manifest_key):
            return str(s3control_client().create_job(AccountId=self.account_id, **request)["JobId"])

    def status(self, job_id: str) -> JobStatus:
        with self._asking("looking at batch job", job_id):
            job = s3control_client().describe_job(AccountId=self.account_id, JobId=job_id)["Job"]
        count = job.get("ProgressSummary", {})
        reasons = [
            f"{one.get('FailureCode', '')}: {one.get('FailureReason', '')}" for one in job.get("FailureReasons", [])
        ]
        return JobStatus(
            state=job["Status"],
            total=count.get("TotalNumberOfTasks", 0),
            succeeded=count.get("NumberOfTasksSucceeded", 0),
            failed=count.get("NumberOfTasksFailed", 0),
            why=" ".join("; ".join(reasons or [job.get("StatusUpdateReason", "")]).split()),
        )

    def cancel(self, job_id: str) -> None:
        """What was tagged until then stays tagged; a job that is over already is fine."""
        try:
            with self._asking("cancelling batch job", job_id):
                s3control_client().update_job_status(
                    AccountId=self.account_id, JobId=job_id, RequestedJobStatus="Cancelled"
                )
        except StorageFailed:
            if self.status(job_id).state not in OVER | {"Cancelling"}:
                raise

    def results(self, report_prefix: str, job_id: str) -> Iterator[TagOutcome]:
        """What the report of a job that is over says of each key; a key that was not tried is not in it."""
        folder = f"{report_prefix.rstrip('/')}/job-{job_id}"
        try:
            report = json.loads(self.store.get(f"{folder}/manifest.json"))
            names = [name.strip() for name in report.get("ReportSchema", COLUMNS).split(",")]
            for part in report["Results"]:
                for values in csv.reader(lines(self.store.stream(self._ours(part["Key"])))):
                    row = dict(zip(names, values, strict=True))
                    yield outcome(self._ours(unquote_plus(row["Key"])), row)
        except NotFound:
            way_out = "wait until it is over; one that never began has none"
            raise NotFound("report of batch job", job_id, way_out) from None
        except (ValueError, KeyError, csv.Error) as error:
            where = f"{folder} in {self.store.uri}"
            raise StorageFailed(
                f"the report of batch job {job_id} cannot be read: {error!r}; look at {where}"
            ) from error

    def _ours(self, key: str) -> str:
        if not key.startswith(self.store.root):
            raise StorageFailed(
                f"the report of a batch job names {key!r}, which is not below {self.store.uri}; look at it"
            )
        return key.removeprefix(self.store.root)

    @contextmanager
    def _asking(self, doing: str, job_id: str) -> Iterator[None]:
        from botocore.exceptions import ClientError

        with failures(self.store.uri, doing, job_id):
            try:
                yield
            except ClientError as error:
                if answer(error)[1] == 404:
                    raise NotFound(
                        "batch job", job_id, "look for it in the account and region it was made in"
                    ) from error
                raise


def refused(error: DesiltError) -> bool:
    """Whether S3 has said no to a job: then there is none. Where it gave no answer, there may be one."""
    return 400 <= answer(error.__cause__)[1] < 500 and not unanswered(error.__cause__)


def outcome(key: str, row: Mapping[str, str]) -> TagOutcome:
    """What one line of a report says; code and status are told apart by what they are, as S3 itself mixes them up."""
    if row["TaskStatus"] == "succeeded":
        return TagOutcome(key, TagResult.TAGGED)
    codes = {row["ErrorCode"], row["HTTPStatusCode"]} - {""}
    if codes and codes <= GONE:
        return TagOutcome(key, TagResult.GONE)
    return TagOutcome(key, TagResult.FAILED, " ".join([*sorted(codes), *row["ResultMessage"].split()]))


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (f"{line.decode()}\n" for line in whole)
    if rest:
        yield rest.decode()
