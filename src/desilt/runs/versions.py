"""What versions that a bucket keeps mean for a run, in words: for its page, and for a terminal."""

from desilt.domain.units import many, size
from desilt.runs.report import Amount, BucketVersions, Report
from desilt.runs.steps import Action

RULE = "a lifecycle rule of the bucket for noncurrent versions ends them"
KEEPS = {
    "Enabled": "The bucket keeps versions",
    "Suspended": "The bucket kept versions once",
    "unknown": "The bucket does not say whether it keeps versions (s3:GetBucketVersioning)",
}
STAYS = {
    "Enabled": "what is removed stays there as an old version",
    "Suspended": "what was written then stays there as an old version",
    "unknown": "if it does, what is removed stays there as an old version",
}


def told(report: Report) -> str:
    """What there is to know; "" where nothing stays behind, and nobody asked."""
    found = report.bucket_versions
    if found is None:
        return ""
    if report.action == Action.PURGE_VERSIONS:
        return _purging(found) if report.swept is None else _purged(found)
    if found.bucket not in KEEPS or (found.left is not None and not found.left.objects):
        return ""
    lie = STAYS[found.bucket] + ", and is paid for"
    if found.left is not None:
        some = "lies" if found.left.objects == 1 else "lie"
        lie = f"at least {versions(found.left)} {some} there still, of what was removed, to be paid for"
    way_out = RULE if report.action == Action.TRASH else f"plan with --purge-versions to remove them too, or {RULE}"
    return f"{KEEPS[found.bucket]}: {lie}; {way_out}."


def _purging(found: BucketVersions) -> str:
    if found.bucket not in KEEPS:
        return "The bucket keeps no versions: nothing has to be purged besides the objects."
    return f"{KEEPS[found.bucket]}: whatever it has of what goes would go too, and nothing brings it back."


def _purged(found: BucketVersions) -> str:
    if found.bucket not in KEEPS:
        return "The bucket keeps no versions: nothing had to be purged besides the objects."
    left = f"; {versions(found.left)} could not be removed" if found.left and found.left.objects else ""
    gone = f"{versions(found.purged)} and {many(found.markers, 'delete marker')} went with what was removed"
    return f"{KEEPS[found.bucket]}: {gone}, and nothing brings them back{left}."


def versions(some: Amount) -> str:
    return f"{many(some.objects, 'version')} of {size(some.bytes)}"
