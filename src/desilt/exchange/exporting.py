"""A lake's repository, given to a lakeFS server.

Objects first, then tables, and refs last, in one request: until then the server's repository is bare, and whoever is
cut off goes on with the same command.
"""

from collections.abc import Collection

from desilt.cache.ranges import Below
from desilt.clock import Clock, system_clock
from desilt.errors import AlreadyExists, BadRequest, DesiltError, MissingTable, ServerFailed
from desilt.exchange import begun, commits, objects, tables
from desilt.exchange.names import on_server
from desilt.exchange.places import check_apart
from desilt.exchange.report import Exchanged
from desilt.exchange.side import Partner
from desilt.exchange.survey import survey
from desilt.executors.executor import HERE, Watch
from desilt.lake.repository import LakeRepository
from desilt.lakefs import dump, dumping
from desilt.lakefs.giving import Receiver
from desilt.lakefs.server import Described, DumpedRefs, Server
from desilt.lakefs.settings import Settings
from desilt.lakefs.site import LOCAL_PATH, Site, find_site, store_of
from desilt.sstable.ranges import Ranges
from desilt.sstable.values import write_metarange

ROOT = ""  # the store begins where the repository does


def export(
    repository: LakeRepository,
    settings: Settings,
    *,
    namespace: str,
    may_miss: bool,
    watch: Watch,
    clock: Clock = system_clock,
) -> Exchanged:
    """``repository`` as a repository of a server, which has none of this name, or one that this has begun."""
    receiver = Receiver(settings)
    if not receiver.is_there():
        _create(receiver, repository, settings, namespace)
    site = find_site(settings, clock=clock, bare=True)
    if not receiver.is_bare():
        raise AlreadyExists("repository", receiver.name, "it has a history of its own; give another name")
    if namespace and namespace.rstrip("/") != site.described.namespace.rstrip("/"):
        raise BadRequest(
            f"{receiver.name} was made in {site.described.namespace}; leave --namespace out to go on there"
        )
    check_apart(repository.store, site.store)
    again = _begun_before(site, repository)
    target = Partner(site.store, ROOT, site.place, Ranges(site.store, ROOT))
    _check_seen(site, target)

    origin = _origin(repository)
    source = repository.source(HERE)
    seen = source.snapshot(repository.clock())
    found = survey(origin, (one.metarange for one in seen.commits.values()), into=site.place, watch=watch)
    copied = objects.copy(origin, target, found.addresses, on_server, again=again, may_miss=may_miss, watch=watch)
    metaranges = tables.rewrite(origin, target, found, on_server, watch=watch)
    made = commits.renamed(seen.commits, metaranges)
    ids = {old: new.id for old, new in made.items()}
    written = begun.write_ids(target, ids)
    watch.begins("restoring refs")
    branches = {branch.name: ids[branch.head] for branch in seen.branches}
    tags = {tag.name: ids[tag.target] for tag in seen.tags}
    refs = dumping.write(target.put_table, {one.id: one for one in made.values()}.values(), branches, tags)
    _restore(receiver, site, refs, set(ids.values()), branches, tags)
    return Exchanged(
        repository=f"{settings.endpoint}/{receiver.name}",
        place=site.described.namespace,
        commits=len(set(ids.values())),
        branches=len(branches),
        tags=len(tags),
        entries=found.entries,
        objects=copied.objects,
        bytes=copied.size,
        copied_before=copied.before,
        elsewhere=found.elsewhere,
        gone=copied.gone,
        missing=copied.missing,
        renamed=sum(old != new for old, new in ids.items()),
        commit_ids=written,
        left_staged=tuple(source.staged_branches()),
    )


def _create(receiver: Receiver, repository: LakeRepository, settings: Settings, namespace: str) -> None:
    """Bare, in a place that is empty and nobody else's."""
    wanted = namespace or receiver.usual_namespace()
    if not wanted:
        raise BadRequest("the server does not say where repositories go; say it with --namespace s3://BUCKET/PREFIX")
    blockstore = Server(settings).blockstore()
    described = Described(receiver.name, wanted, repository.default_branch, read_only=False, storage_id="")
    store = store_of(described, blockstore, bare=True)
    check_apart(repository.store, store)
    begun.check_empty(store, ROOT)
    receiver.create(wanted, repository.default_branch)


def _begun_before(site: Site, repository: LakeRepository) -> bool:
    """Whether this copy was begun, and cut off; else it is begun, if nothing is there."""
    said = {"repository": repository.uid, "name": repository.name}
    before = begun.read(site.store, ROOT)
    if before == said:
        return True
    if before is not None:
        raise BadRequest(
            f"{site.described.namespace} has the beginning of a copy of another repository; give another name"
        )
    if site.described.default_branch != repository.default_branch:
        raise BadRequest(
            f"{site.described.name!r} was made with default branch {site.described.default_branch!r}, and "
            f"{repository.name!r} has {repository.default_branch!r}; give another name"
        )
    begun.check_empty(site.store, ROOT)
    begun.note(site.store, ROOT, said)
    return False


def _check_seen(site: Site, target: Partner) -> None:
    """Refuse to go on unless the server sees what we put: an empty table, which does no harm anywhere."""
    probe = write_metarange([])
    target.put_table(probe.id, probe.data)
    try:
        same = site.server.table("meta_range", probe.id) == probe.data
    except MissingTable:
        same = False
    if not same:
        local = f"; set {LOCAL_PATH} to the server's blockstore.local.path" if site.blockstore == "local" else ""
        raise BadRequest(
            f"what is put into {site.store.uri} is not what the server finds in {site.described.namespace}{local}"
        )


def _origin(repository: LakeRepository) -> Partner:
    def gone(addresses: Collection[str]) -> frozenset[str]:
        return frozenset(repository.tombstones(addresses))

    return Partner(repository.store, repository.prefix, Below(repository.prefix), repository.ranges, gone)


def _restore(
    receiver: Receiver, site: Site, refs: DumpedRefs, ids: set[str], branches: dict[str, str], tags: dict[str, str]
) -> None:
    """All refs at once; and whether the server has them, whatever it answered."""
    failure: DesiltError | None = None
    try:
        receiver.restore(refs)
    except DesiltError as error:  # it may have been done all the same
        failure = error
    if failure is not None and receiver.is_bare():
        raise failure
    default = site.described.default_branch
    seen = dump.read(site.server.table, site.server.dump(), default_branch=default).snapshot
    there = {branch.name: branch.head for branch in seen.branches}, {tag.name: tag.target for tag in seen.tags}
    if not ids <= seen.commits.keys() or there != (branches, tags):
        raise failure or ServerFailed(
            receiver.name,
            "was given refs, and has others now",
            "delete the repository there, and give it again under another name",
        )
