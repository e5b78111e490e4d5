"""The shapes in which the model of a lakeFS server answers: the keys of a real one's JSON."""

from desilt.domain.entry import encode_prefix
from desilt.domain.times import seconds
from lakefs_http import Answer

MOST = 1000  # results to a page


def described(repository):
    return {
        "creation_date": seconds(repository.created_at),
        "default_branch": repository.default_branch,
        "id": repository.name,
        "read_only": repository.read_only,
        "storage_id": "",
        "storage_namespace": repository.place.namespace,
    }


def ref(name, commit):
    return {"commit_id": commit, "id": name}


def committed(commit):
    return {
        "committer": commit.committer,
        "creation_date": seconds(commit.created_at),
        "generation": commit.generation,
        "id": commit.id,
        "message": commit.message,
        "meta_range_id": commit.metarange,
        "metadata": dict(commit.metadata),
        "parents": list(commit.parents),
        "version": 1,
    }


def listed(repository, entry):
    """An entry as lists have it; bytes of a path that are no UTF-8 cannot be told."""
    more = {"metadata": dict(entry.metadata)} if entry.metadata else {}
    return {
        "checksum": entry.checksum,
        "content_type": entry.content_type,
        "mtime": entry.modified_ns // 10**9,
        "path": told(entry.path),
        "path_type": "object",
        "physical_address": repository.shown(entry),
        "size_bytes": entry.size,
        **more,
    }


def stat(repository, entry):
    return {**listed(repository, entry), "metadata": dict(entry.metadata)}


def told(path):
    """A path as JSON can have it."""
    return "".join("\ufffd" if "\udc80" <= one <= "\udcff" else one for one in path)


def facts(body, metadata):
    """What somebody says of an object that lies somewhere."""
    return {
        "size": body["size_bytes"],
        "checksum": body["checksum"],
        "content_type": body.get("content_type") or "application/octet-stream",
        "metadata": body.get(metadata),
        "mtime": body.get("mtime"),
    }


def page(ask, rows, *, in_order=False):
    """Some of ``rows`` by what they are asked for by; in order of bytes, unless they are in an order of their own."""
    after, prefix = ask.query.get("after", ""), ask.query.get("prefix", "")
    keys = list(rows)
    if in_order:
        keys = keys[keys.index(after) + 1 :] if after in rows else keys
    else:
        keys.sort(key=encode_prefix)
        keys = [key for key in keys if encode_prefix(key) > encode_prefix(after) and key.startswith(prefix)]
    amount = int(ask.query.get("amount", 100))
    amount = amount if 0 <= amount <= MOST else MOST
    some = keys[:amount]
    more = len(keys) > len(some)
    head = {"has_more": more, "max_per_page": MOST, "next_offset": told(some[-1]) if more and some else ""}
    results = [rows[key] for key in some]
    return Answer(200, {"pagination": {**head, "results": len(results)}, "results": results})
