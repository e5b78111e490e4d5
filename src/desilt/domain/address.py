"""Where objects lie: ``repos/<repo>/branches/<branch>/<partition>/<object>``.

Every name here carries the time it was made, so that an object's age has a
witness besides the store's own clock. Partitions count time downwards: the
newest one lists first.
"""

import base64
from datetime import datetime, timedelta
from urllib.parse import unquote

from desilt.domain.times import EPOCH

YEAR_4000_MS = 64_060_588_800_000
UID_BYTES = 12
PARTITION_OBJECTS = 50_000
PARTITION_AGE = timedelta(hours=1)


def uid(now: datetime, entropy: bytes) -> str:
    """A name that is never used again: four bytes of time, eight of chance; 20 characters that sort by time."""
    seconds = int(now.timestamp())
    raw = seconds.to_bytes(4) + entropy[: UID_BYTES - 4]
    if len(raw) != UID_BYTES:
        raise ValueError(f"a uid needs {UID_BYTES - 4} bytes of entropy")
    return base64.b32hexencode(raw).decode().rstrip("=").lower()


def uid_time(name: str) -> datetime:
    """The second in which ``name`` was made."""
    raw = base64.b32hexdecode(name.upper() + "=" * (-len(name) % 8))
    return EPOCH + timedelta(seconds=int.from_bytes(raw[:4]))


def partition(opened_at: datetime, instance: str) -> str:
    """``<descending time>_<instance>``; two of one instance differ by at least a millisecond."""
    return f"{YEAR_4000_MS - int(opened_at.timestamp() * 1000):014d}_{instance}"


def partition_time(name: str) -> datetime:
    """The moment ``name`` was opened."""
    return EPOCH + timedelta(milliseconds=YEAR_4000_MS - int(name.split("_", 1)[0]))


def boundary(at: datetime) -> str:
    """What sorts before the name of every partition opened at ``at`` or earlier, and after all later ones."""
    return f"{YEAR_4000_MS - int(at.timestamp() * 1000):014d}"


def repository_prefix(repository: str) -> str:
    return f"repos/{repository}/"


def branch_prefix(branch: str) -> str:
    """Below the repository's prefix; addresses in entries are relative to that."""
    return f"branches/{branch}/"


def is_inside(uri: str, root: str) -> bool:
    """Whether ``uri`` may name something below ``root``, however either is spelled.

    Schemes of one store, percent signs, dots and doubled slashes are read in every
    way that some program reads them; one way that leads inside is enough.
    """
    return bool(readings(uri, root)) or _plain(root) in map(_plain, (uri, unquote(uri)))


def readings(uri: str, root: str) -> set[str]:
    """What ``uri`` may name below ``root``, by each way to read it that leads there."""
    place = _plain(root) + "/"
    forms = {_plain(form) for form in (uri, unquote(uri))}
    return {form.removeprefix(place) for form in forms if form.startswith(place)}


def _plain(uri: str) -> str:
    scheme, _, rest = uri.partition("?")[0].partition("://")
    kind = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "wasb": "az", "wasbs": "az"}
    host, _, path = unquote(rest).partition("/")
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            segments = segments[:-1]
        elif segment not in ("", "."):
            segments.append(segment)
    container = host.partition("@")[0]  # abfs://container@account/…
    return "/".join([f"{kind.get(scheme.lower(), scheme.lower())}://{container}", *segments])
