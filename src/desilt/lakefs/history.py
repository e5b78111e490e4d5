"""History as the server has it at one moment, with people's orders; counted here, since the server does not."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from desilt.domain.times import moment
from desilt.errors import Unreadable
from desilt.lakefs import dump
from desilt.lakefs.core import LakefsCore
from desilt.lakefs.server import DumpedRefs
from desilt.records import holds, revisions
from desilt.records.revisions import SeenRefs
from desilt.repository.snapshot import Revision, Snapshot, Use


def read(core: LakefsCore, now: datetime, *, uses: bool = False) -> Snapshot:
    """All of it, checked; a hold counts if it does at ``now`` or by the clock."""
    refs = core.server.dump()
    seen = dump.read(core.table, refs, default_branch=core.default_branch).snapshot
    with core.records.read() as tx:
        last = revisions.newest(tx, core.uid)
    if last is not None and last.commits not in ("", refs.commits):
        _check_whole(core, last, seen)
    with core.records.write() as tx:
        found = revisions.see(tx, core.uid, _mark(refs), refs.commits, now=core.clock())
        orders = [hold for hold in holds.every(tx, core.uid) if hold.counts(min(now, core.clock()))]
    whole = replace(seen, revision=Revision(found.number, found.mark), holds=tuple(orders))
    return _used(core, whole) if uses else whole


def made_since(core: LakefsCore, since: Revision, seen: Snapshot) -> set[str]:
    """The commits of ``seen`` that were not there at ``since``."""
    with core.records.read() as tx:
        then = revisions.at(tx, core.uid, since.number)
    if then is None or not then.commits:
        return set(seen.commits)
    return seen.commits.keys() - dump.commit_ids(core.table, then.commits)


def resolve(core: LakefsCore, now: Callable[[], datetime], ref: str) -> str:
    """The commit that a branch, a tag or an id means; anything else the server must know."""
    seen = read(core, now())
    named = {tag.name: tag.target for tag in seen.tags} | {branch.name: branch.head for branch in seen.branches}
    if ref in named or ref in seen.commits:
        return named.get(ref, ref)
    return core.server.commit_of(ref)


def lost(core: LakefsCore) -> set[str]:
    """The commits that were there when refs were last seen, and are no longer."""
    refs = core.server.dump()
    with core.records.read() as tx:
        last = revisions.newest(tx, core.uid)
    if last is None or last.commits in ("", refs.commits):
        return set()
    return dump.commit_ids(core.table, last.commits) - dump.commit_ids(core.table, refs.commits)


def accept(core: LakefsCore) -> None:
    """Refs as they are, seen, whatever was before."""
    refs = core.server.dump()
    dump.read(core.table, refs, default_branch=core.default_branch)
    with core.records.write() as tx:
        revisions.see(tx, core.uid, _mark(refs), refs.commits, now=core.clock())


def _check_whole(core: LakefsCore, last: SeenRefs, seen: Snapshot) -> None:
    """A server never loses commits: where one is gone that was seen before, it was restored, or made anew."""
    lost = dump.commit_ids(core.table, last.commits) - seen.commits.keys()
    if lost:
        raise Unreadable(
            f"commit {min(lost)} and {len(lost) - 1:,} more that {core.name!r} had are missing from the server's dump: "
            "was it restored from a copy? Nothing is removed until they are back; see `desilt lakefs adopt --help`"
        )


def _mark(refs: DumpedRefs) -> str:
    return " ".join((refs.commits or "-", refs.branches or "-", refs.tags or "-"))


def _used(core: LakefsCore, seen: Snapshot) -> Snapshot:
    """With how each branch is used: nobody tells when it was made or uploaded to, but how long it was seen there.

    A branch may be made today on a commit of last year; so it is as old as the first look that found it.
    """
    heads = {branch.name: branch.head for branch in seen.branches}
    made = _there_since(core, heads, lambda name, then: name in then)
    moved = _there_since(core, heads, lambda name, then: then.get(name) == heads[name])
    uses = {name: Use(moved[name], protects(core, name)) for name in heads}
    branches = tuple(replace(branch, created_at=made[branch.name]) for branch in seen.branches)
    return replace(seen, branches=branches, uses=uses)


def protects(core: LakefsCore, branch: str) -> str:
    """Why a branch must not be deleted; "" if nothing is known."""
    if branch == core.default_branch:
        return "it is the default branch"
    return "it has staged entries" if core.server.is_dirty(branch) else ""


def _there_since(
    core: LakefsCore, heads: Mapping[str, str], was_so: Callable[[str, Mapping[str, str]], bool]
) -> dict[str, datetime]:
    """Since when each branch was so at every look, back from now; one that never was before, since now."""
    since = dict.fromkeys(heads, core.clock())
    with core.records.read() as tx:
        rows = [(found, moment(at)) for found, at in revisions.back(tx, core.uid)]
    still, last = set(heads), ""
    for found, at in rows:
        branches = found.refs.split(" ")[1] if found.refs else ""
        if branches != last:
            then, last = dump.heads(core.table, "" if branches == "-" else branches), branches
            still = {name for name in still if was_so(name, then)}
        since |= dict.fromkeys(still, at)
        if not still:
            break
    return since
