"""Whether a listing of an S3 bucket is at its end: asked in so many words, and believed only if so answered.

A server may find that it cannot list after it has said 200, and send an error in place of a page. Obstore takes that
for an empty page, the last one; boto3 for the error it is, and asks again.
"""

from desilt.errors import StorageFailed
from desilt.objects import cloud_listing
from desilt.objects.s3_client import failures, s3_client


def keys_behind(bucket: str, folder: str, start: str) -> list[str]:
    """The first keys below ``folder`` after ``start``; none only where the server says that it lists no more."""
    uri, more, pauses = f"s3://{bucket}", dict[str, str](), iter(cloud_listing.PAUSES)
    unsaid = StorageFailed(f"{uri} does not say whether there is more in {folder!r}; try again later")
    while True:
        with failures(uri, "listing", folder):
            page = s3_client(bucket).list_objects_v2(Bucket=bucket, Prefix=folder, StartAfter=start, **more)
        found = [row["Key"] for row in page.get("Contents", []) if row["Key"] != folder]
        if found or page.get("IsTruncated") is False:
            return found
        token = page.get("NextContinuationToken")  # a page may be empty, and not the last
        if not token or more.get("ContinuationToken") == token:
            cloud_listing.pause_or_raise(unsaid, pauses)
        more = {"ContinuationToken": token} if token else {}
