"""A repository's own place in a store, and addresses below it, however they are spelled.

An address counts as inside if any way of reading it leads inside: held once too often does no harm. The place ends
with a slash, so that ``s3://b/a`` has nothing of ``s3://b/ab``.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.address import readings
from desilt.errors import BadRequest
from desilt.lakefs.layout import DATA, SHARD, XID

SCHEMES = {
    "s3": ("s3", "s3a", "s3n"),
    "gs": ("gs", "gcs"),
    "az": ("abfs", "abfss", "wasb", "wasbs", "az"),
    "local": ("local", "file"),
    "mem": ("mem",),
}
AZURE = re.compile(r"https?://([^./]+)\.(?:blob|dfs|adls)\.core\.[a-z.]+/([^/]+)/?(.*)", re.DOTALL)
IN_DATA = f"{SHARD}{XID}/"
HOST = re.compile(r"https?://[^/]*", re.IGNORECASE)
ODD = r"%|\?|//|/\.{1,2}(/|$)"  # after a scheme: what may be read in more ways than one


@dataclass(frozen=True, slots=True)
class Namespace:
    """What a server calls the storage namespace of a repository."""

    uri: str
    also: tuple[str, ...] = ()  # the same place by other URIs: where a local blockstore keeps its files

    def __post_init__(self) -> None:
        if not re.match(r"[a-z0-9]+://.", self.uri):
            raise BadRequest(f"{self.uri!r} is no storage namespace that is known here; it should begin with s3://, …")

    @property
    def spellings(self) -> tuple[str, ...]:
        """Each with a slash at its end."""
        return tuple(dict.fromkeys(one for uri in (self.uri, *self.also) for one in _spelled(uri.rstrip("/") + "/")))

    def inside(self, uris: pa.Array) -> pa.Array:
        """Each whole URI as an address below this place; null where it leads elsewhere."""
        found = pa.nulls(len(uris), pa.string())
        for place in self.spellings:
            there = pc.starts_with(uris, place)
            if pc.any(there).as_py():  # to cut texts takes twenty times as long as to see how they begin
                found = pc.if_else(there, pc.utf8_slice_codeunits(uris, len(place)), found)
        odd = pc.match_substring_regex(pc.replace_substring_regex(uris, "^[a-z0-9]+://", "", max_replacements=1), ODD)
        if AZURE.fullmatch(self.uri.rstrip("/") + "/"):  # names of hosts are the same in any case
            odd = pc.or_(odd, pc.match_substring_regex(uris, "^[^/]*//[^/]*[A-Z]"))
        if self.uri.startswith("local://") and found.null_count:
            found = pc.coalesce(found, self._in_a_directory(uris))
        rows = np.flatnonzero(odd.to_numpy(zero_copy_only=False)).tolist()
        if not rows:
            return found
        told = found.to_pylist()
        for row in rows:
            told[row] = self._read(uris[row].as_py())
        return pa.array(told, pa.string())

    def _in_a_directory(self, uris: pa.Array) -> pa.Array:
        """A local blockstore writes its own directory before an address, and may do so twice: the last name counts."""
        name = f"/{self.uri.removeprefix('local://').strip('/')}/"
        there = pc.and_(pc.match_substring_regex(uris, "^(local|file)://"), pc.match_substring(uris, name))
        tails = pc.replace_substring_regex(uris, f"(?s)^.*{re.escape(name)}", "")
        tails = pc.replace_substring_regex(tails, f"^({IN_DATA})", f"{DATA}\\1") if name == f"/{DATA}" else tails
        return pc.if_else(there, tails, pa.scalar(None, pa.string()))

    def _read(self, uri: str) -> str | None:
        """One URI that may be read in several ways, as one that leads inside; as it is written there is no object."""
        host = HOST.match(uri)
        lower = uri if host is None else host[0].lower() + uri[host.end() :]
        found = min((way for place in self.spellings for way in readings(lower, place)), default=None)
        if found is None and self.uri.startswith("local://"):
            plain = re.sub(r"(?<!:)/(?:\.?/)+", "/", unquote(uri))
            found = self._in_a_directory(pa.array([plain]))[0].as_py()
        return found


def _spelled(place: str) -> list[str]:
    """A URI that ends with a slash, in the ways that programs write it."""
    if azure := AZURE.fullmatch(place):
        account, container, path = azure.groups()
        hosts = [f"{account}.{kind}.core.windows.net" for kind in ("blob", "dfs", "adls")]
        whole = [f"{scheme}://{host}/{container}/{path}" for scheme in ("https", "http") for host in hosts]
        named = [f"{scheme}://{container}@{host}/{path}" for scheme in SCHEMES["az"] for host in hosts]
        return [place, *whole, *named, f"az://{container}/{path}"]
    scheme, rest = place.split("://", 1)
    same = next((some for some in SCHEMES.values() if scheme in some), (scheme,))
    return [f"{one}://{rest}" for one in (scheme, *same)]
