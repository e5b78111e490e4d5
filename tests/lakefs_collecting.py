"""What the model of a lakeFS server does for collectors: dumps of refs, lists of what is staged, active commits."""

import base64
import json
from datetime import timedelta

import lakefs_files as files
from desilt.domain.entry import AddressType, decode_path
from desilt.errors import DesiltError, MissingTable, NotFound
from desilt.lakefs import dump as reading
from desilt.lakefs.server import DumpedRefs
from lakefs_state import Branch, Refused, hash_of, refuse


def dump(repository):
    """The metaranges of commits, branches and tags: all that there are; and the manifest of them."""
    commits = [commit for commit in repository.commits.values() if commit.id not in repository.lost_commits]
    branches = [] if repository.lost_branches else repository.branches.values()
    messages = {
        ("commits", "commit"): {commit.id: files.commit_message(commit) for commit in commits},
        ("branches", "branch"): {branch.name: files.branch_message(branch) for branch in branches},
        ("tags", "tag"): {name: files.tag_message(name, target) for name, target in repository.tags.items()},
    }
    told = {
        f"{kind}_meta_range_id": files.put_dump(repository.place, entity, some, repository.ways.raggedness)
        for (kind, entity), some in messages.items()
    }
    repository.place.put(files.MANIFEST, json.dumps(told, indent=2, sort_keys=True).encode())
    return told


def restore(repository, told):
    """Refs as they were dumped, into a repository that has none."""
    if repository.commits:
        raise Refused(400, "can only restore into a bare repository")
    refs = DumpedRefs(*(told[f"{kind}_meta_range_id"] for kind in ("commits", "branches", "tags")))

    def table(_, name):
        try:
            return repository.place.store.get(f"_lakefs/{name}")
        except NotFound:
            raise MissingTable(name) from None

    try:
        found = reading.read(table, refs, default_branch=repository.default_branch)
    except DesiltError as error:
        raise Refused(400, str(error)) from None
    for commit in found.snapshot.commits.values():
        if commit.generation < 1 or commit.id != hash_of(commit):
            raise Refused(400, f"commit {commit.id} is not the hash of its fields")
    repository.commits.update(found.snapshot.commits)
    repository.tags.update({tag.name: tag.target for tag in found.snapshot.tags})
    for one in found.snapshot.branches:
        repository.branches[one.name] = Branch(one.name, one.head, one.name in found.hidden)


def uncommitted(repository, token):
    """A page of addresses that are staged: the run, whether it has a file, and where to go on.

    Every page looks anew, at where the last one stopped: what was staged behind that since is not listed.
    """
    ways = repository.ways
    at = json.loads(base64.b64decode(token)) if token else {"branch": "", "key": ""}
    at.setdefault("run_id", repository.names.falling())
    start, rows, following = (at["branch"], at["key"].encode(errors="surrogateescape")), [], None
    for name in sorted(one for one in repository.branches if one >= start[0]):
        for path, entry in repository.changes(name).items():
            address = entry and _listed(repository, entry)
            if address and (name, path) >= start and following is None:
                if len(rows) == ways.uncommitted_page:
                    following = (name, path)
                else:
                    rows.append((address, entry.modified_ns // 10**9))
        if ways.page_for_each_branch and following is None:
            following = (name + "\0", b"")
        if following:
            break
    if rows:
        files.put_staged(repository.place, at["run_id"], repository.names.rising(), rows)
    if not following:
        return at["run_id"], bool(rows), ""
    mark = {"branch": following[0], "path": "", "run_id": at["run_id"], "key": decode_path(following[1])}
    return at["run_id"], bool(rows), base64.b64encode(json.dumps(mark).encode()).decode()


def _listed(repository, entry):
    """An address as prepare_uncommited has it; None if it passes it over."""
    inside = repository.place.namespace.rstrip("/") + "/"
    if entry.address_type is AddressType.RELATIVE:
        return entry.address
    return entry.address.removeprefix(inside) if entry.address.startswith(inside) else None


def active(repository):
    """The commits that the rules keep: heads, what dangles, and main parents of what is young; in order of ids."""
    default_days, branch_days = repository.rules or refuse(404, "not found")
    commits = repository.commits
    starts = [(one.head, branch_days.get(one.name, default_days), True) for one in repository.branches.values()]
    below = {commit.parents[0] for commit in commits.values() if commit.parents}
    loose = commits.keys() - below - {head for head, *_ in starts}
    passed, kept = {}, []  # for how many days, at the most, a commit was come by
    for name, days, is_head in sorted([*starts, *((name, default_days, False) for name in loose)]):
        since = repository.clock() - timedelta(days=days)
        here, first = commits[name], is_head
        keep = is_head or here.created_at > since  # what dangles has a child of its own age
        while first or passed.get(here.id, days - 1) < days:
            if keep:
                kept.append(here.id)
            passed[here.id], first = max(days, passed.get(here.id, days)), False
            if not here.parents:
                break
            keep, here = here.created_at > since, commits[here.parents[0]]
    return [commits[name] for name in dict.fromkeys(kept)]


def prepare_commits(repository):
    """The run, and where its list is."""
    commits, run = active(repository), repository.names.falling()
    return run, files.put_active(repository.place, run, commits)


def set_rules(repository, default_days, branch_days):
    repository.rules = default_days, dict(branch_days)
    files.put_rules(repository.place, default_days, branch_days)


def delete_rules(repository):
    repository.rules = None
    repository.place.put(files.RULES, b"")
