"""A server's repository, taken into a lake of our own.

Objects first, then tables, and the repository last, in one transaction: until then the lake has none of that name, and
whoever is cut off goes on with the same command. The server is only read.
"""

from desilt.cache.ranges import Below
from desilt.clock import Clock, system_clock
from desilt.domain.address import repository_prefix
from desilt.errors import BadRequest, MissingTable, NotFound
from desilt.exchange import begun, commits, objects, tables
from desilt.exchange.names import in_lake
from desilt.exchange.places import check_apart
from desilt.exchange.report import Exchanged
from desilt.exchange.side import Partner
from desilt.exchange.survey import survey
from desilt.executors.executor import Watch
from desilt.lake import founding
from desilt.lake.founding import Founding
from desilt.lake.lake import Lake
from desilt.lakefs import dump
from desilt.lakefs.server import TableKind
from desilt.lakefs.settings import Settings
from desilt.lakefs.site import Site, find_site
from desilt.sstable.ranges import FOLDER as TABLES
from desilt.sstable.ranges import Ranges

REPOSITORIES = "repos/"


def take_in(
    settings: Settings, lake: Lake, name: str, *, may_miss: bool, watch: Watch, clock: Clock = system_clock
) -> Exchanged:
    """The repository that ``settings`` name as the repository ``name`` of ``lake``, which has none yet."""
    site = find_site(settings, clock=clock)
    check_apart(lake.store, site.store)
    new, again = _begin(lake, name, site)
    origin = Partner(site.store, "", site.place, Ranges(site.store, ""))
    target = Partner(new.core.store, new.core.prefix, Below(new.core.prefix), new.core.ranges)
    watch.begins("asking the server")
    dumped = dump.read(_tables(site), site.server.dump(), default_branch=site.described.default_branch)
    seen, named = dumped.snapshot, in_lake(new.branch)
    staged = tuple(branch.name for branch in seen.branches if site.server.is_dirty(branch.name))
    found = survey(origin, (one.metarange for one in seen.commits.values()), into=target.place, watch=watch)
    copied = objects.copy(origin, target, found.addresses, named, again=again, may_miss=may_miss, watch=watch)
    metaranges = tables.rewrite(origin, target, found, named, watch=watch)
    watch.begins("making the repository")
    history = commits.moved(seen.commits, metaranges)
    made = founding.make(
        lake,
        new,
        history,
        {branch.name: branch.head for branch in seen.branches},
        seen.tags,
        {named(address).rpartition("/")[0] + "/" for address in found.addresses.to_pylist()},
    )
    return Exchanged(
        repository=made.argument,
        place=made.uri,
        commits=len(seen.commits),
        branches=len(seen.branches),
        tags=len(seen.tags),
        entries=found.entries,
        objects=copied.objects,
        bytes=copied.size,
        copied_before=copied.before,
        elsewhere=found.elsewhere,
        gone=copied.gone,
        missing=copied.missing,
        renamed=0,
        commit_ids="",
        left_staged=staged,
        redated=sum(one.created_at != seen.commits[one.id].created_at for one in history),
        was_hidden=tuple(sorted(dumped.hidden)),
    )


def _begin(lake: Lake, name: str, site: Site) -> tuple[Founding, bool]:
    """The place of the new repository, and whether it was begun, and cut off, before."""
    source = site.described.namespace.rstrip("/")
    for folder in lake.store.folders(REPOSITORIES):
        before = begun.read(lake.store, folder)
        if before is None or before.get("name") != name or _is_there(lake, before["uid"]):
            continue
        if before["from"] != source:
            raise BadRequest(
                f"a copy of {before['from']} as {name!r} was begun here and not ended; choose another name"
            )
        default = site.described.default_branch
        return founding.begin(lake, name, default, uid=before["uid"], branch=before["branch"]), True
    new = founding.begin(lake, name, site.described.default_branch)
    said = {"from": source, "name": name, "uid": new.row.uid, "branch": new.branch}
    begun.note(lake.store, repository_prefix(new.row.uid), said)
    return new, False


def _is_there(lake: Lake, uid: str) -> bool:
    return any(lake.repository(name).uid == uid for name in lake.repositories())


def _tables(site: Site) -> dump.Tables:
    def table(_: TableKind, name: str) -> bytes:
        try:
            return site.store.get(TABLES + name)
        except NotFound:
            raise MissingTable(name) from None

    return table
