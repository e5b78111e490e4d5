"""S3 Batch Operations on loopback, as far as tagging goes: reads a manifest from a bucket, tags, writes the report.

    with batch_operations(s3_server) as batch:
        environ.update(batch.env)        # beside those of the S3 server
        batch.refuse["key"] = "AccessDenied", "403", "no"

A job is over at the second look at it, or once ``batch.waits`` is no longer set. What this does not show: whether AWS
takes the request (it is compared with the documented form alone), what a role may do, how long a job takes, how keys of
its report are really encoded (here: as the manifest has them), and what a job does to objects that change meanwhile.
"""

import csv
import hashlib
import io
import json
import threading
import uuid
import xml.etree.ElementTree as ET
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

SPACE = "{http://awss3control.amazonaws.com/doc/2018-08-20/}"
OVER = ("Complete", "Failed", "Cancelled")
SCHEMA = "Bucket, Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode, ResultMessage"


class Refusal(Exception):
    """A status and a code."""


class Job:
    """What was asked, and how far it is."""

    def __init__(self, asked):
        self.id, self.asked, self.state, self.looks = str(uuid.uuid4()), asked, "New", 0
        self.rows, self.why = [], ("", "")

    @property
    def tags(self):
        return [{"Key": key, "Value": value} for key, value in self.asked["tags"]]


class BatchOperations:
    """Jobs by their ids; ``refuse`` maps whole keys to the code, status and message of their refusal."""

    def __init__(self, s3, env):
        self.s3, self.env = s3, env
        self.jobs, self.refuse, self.waits = {}, {}, False
        self._lock = threading.Lock()

    def create(self, body):
        asked = parsed(body)
        for job in self.jobs.values():
            if job.asked["ClientRequestToken"] == asked["ClientRequestToken"]:
                if job.asked != asked:
                    raise Refusal(400, "IdempotencyException")
                return f"<CreateJobResult><JobId>{job.id}</JobId></CreateJobResult>"
        job = Job(asked)
        self.jobs[job.id] = job
        return f"<CreateJobResult><JobId>{job.id}</JobId></CreateJobResult>"

    def describe(self, job):
        job.looks += 1
        if job.state not in (*OVER, "Suspended"):
            job.state = "Active"
            if job.looks > 1 and not self.waits:
                self.run(job)
        done = sum(row[3] == "succeeded" for row in job.rows)
        why = "<member><FailureCode>{}</FailureCode><FailureReason>{}</FailureReason></member>".format(*job.why)
        return (
            f"<DescribeJobResult><Job><JobId>{job.id}</JobId><Status>{job.state}</Status><ProgressSummary>"
            f"<TotalNumberOfTasks>{len(job.rows)}</TotalNumberOfTasks>"
            f"<NumberOfTasksSucceeded>{done}</NumberOfTasksSucceeded>"
            f"<NumberOfTasksFailed>{len(job.rows) - done}</NumberOfTasksFailed></ProgressSummary>"
            f"<FailureReasons>{why if job.why[0] else ''}</FailureReasons></Job></DescribeJobResult>"
        )

    def update(self, job, wanted):
        if job.state in OVER:
            raise Refusal(400, "JobStatusException")
        job.state = wanted
        status = f"<JobId>{job.id}</JobId><Status>{wanted}</Status>"
        return f"<UpdateJobStatusResult>{status}</UpdateJobStatusResult>"

    def run(self, job):
        bucket, _, key = job.asked["ObjectArn"].removeprefix("arn:aws:s3:::").partition("/")
        found = self.s3.get_object(Bucket=bucket, Key=key)
        if found["ETag"].strip('"') != job.asked["ETag"]:
            job.state, job.why = "Failed", ("ManifestChanged", "the ETag is another")
            return
        listed = csv.reader(io.StringIO(found["Body"].read().decode()))
        job.rows = [self.tag(job, bucket, encoded) for bucket, encoded in listed]
        self.report(job)
        job.state = "Complete"

    def tag(self, job, bucket, encoded):
        key = unquote(encoded)
        code, status, message = self.refuse.get(key, ("", "200", "Successful"))
        if not code:
            try:
                self.s3.put_object_tagging(Bucket=bucket, Key=key, Tagging={"TagSet": job.tags})  # in place of all
            except ClientError as error:
                code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
                status = str(error.response["ResponseMetadata"]["HTTPStatusCode"])
        return [bucket, encoded, "", "failed" if code else "succeeded", code, status, message]

    def report(self, job):
        bucket = job.asked["report_bucket"].removeprefix("arn:aws:s3:::")
        folder, results = f"{job.asked['Prefix']}/job-{job.id}", []
        for status in ("succeeded", "failed"):
            if rows := [row for row in job.rows if row[3] == status]:
                text = io.StringIO()
                csv.writer(text, lineterminator="\n").writerows(rows)
                body = text.getvalue().encode()
                key = f"{folder}/results/{hashlib.sha1(body).hexdigest()}.csv"
                self.s3.put_object(Bucket=bucket, Key=key, Body=body)
                sum_ = hashlib.md5(body).hexdigest()
                results.append({"TaskExecutionStatus": status, "Bucket": bucket, "MD5Checksum": sum_, "Key": key})
        told = {"Format": "Report_CSV_20180820", "Results": results, "ReportSchema": SCHEMA}
        self.s3.put_object(Bucket=bucket, Key=f"{folder}/manifest.json", Body=json.dumps(told).encode())

    def answer(self, method, url, body, account):
        with self._lock:
            words = urlsplit(url).path.removeprefix("/v20180820/jobs").strip("/").split("/")
            if len(account or "") != 12:
                raise Refusal(400, "InvalidRequest")
            if words == [""]:
                return self.create(body)
            if words[0] not in self.jobs:
                raise Refusal(404, "NoSuchJob")
            job = self.jobs[words[0]]
            if method == "POST":
                return self.update(job, parse_qs(urlsplit(url).query)["requestedJobStatus"][0])
            return self.describe(job)


def parsed(body):
    """The request, of which every part has to be there and as documented."""
    tree = ET.fromstring(body)

    def text(path):
        found = tree.find("/".join(SPACE + word for word in path.split("/")))
        if found is None or not found.text:
            raise Refusal(400, f"InvalidRequest without {path}")
        return found.text

    expected = {
        "ConfirmationRequired": "false",
        "Manifest/Spec/Format": "S3BatchOperations_CSV_20180820",
        "Report/Format": "Report_CSV_20180820",
        "Report/Enabled": "true",
        "Report/ReportScope": "AllTasks",
    }
    if wrong := {path for path, value in expected.items() if text(path) != value}:
        raise Refusal(400, f"InvalidRequest in {sorted(wrong)}")
    fields = tree.find(f"{SPACE}Manifest/{SPACE}Spec/{SPACE}Fields")
    if [member.text for member in fields] != ["Bucket", "Key"]:
        raise Refusal(400, "InvalidRequest in Fields")
    tags = tree.find(f"{SPACE}Operation/{SPACE}S3PutObjectTagging/{SPACE}TagSet")
    assert int(text("Priority")) >= 0
    return {
        "ClientRequestToken": text("ClientRequestToken"),
        "RoleArn": text("RoleArn"),
        "ObjectArn": text("Manifest/Location/ObjectArn"),
        "ETag": text("Manifest/Location/ETag"),
        "report_bucket": text("Report/Bucket"),
        "Prefix": text("Report/Prefix"),
        "tags": [(tag.find(f"{SPACE}Key").text, tag.find(f"{SPACE}Value").text or "") for tag in tags],
    }


@contextmanager
def batch_operations(server):
    """Beside a running S3 server, whose buckets it reads and writes."""
    s3 = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
        region_name=server.region,
        config=Config(s3={"addressing_style": "path"}),
    )

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                status, text = 200, batch.answer(self.command, self.path, body, self.headers.get("x-amz-account-id"))
            except Refusal as refusal:
                status, code = refusal.args
                text = f"<ErrorResponse><Error><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

        do_GET = do_POST = answer  # noqa: N815 - as the server asks

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        batch = BatchOperations(s3, {"AWS_ENDPOINT_URL_S3_CONTROL": f"http://127.0.0.1:{http.server_port}"})
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield batch
        finally:
            http.shutdown()
            thread.join()
