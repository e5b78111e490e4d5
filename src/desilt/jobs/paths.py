"""Whether a repository has, or ever had, a path that begins so or fits a glob."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from desilt.domain.cutoffs import WILDCARD
from desilt.domain.entry import decode_path, encode_prefix
from desilt.lake import commits
from desilt.lake.repository import Repository
from desilt.lake.staging import after_prefix
from desilt.sources import metarange_cache


def has_path(repository: Repository, prefix: str) -> bool:
    """Whether any path begins with ``prefix``."""
    return any(True for _ in paths(repository, prefix))


def has_glob(repository: Repository, glob: str) -> bool:
    """Whether any path fits ``glob``, in which ``*`` crosses slashes too."""
    return any(fnmatchcase(path, glob) for path in paths(repository, WILDCARD.split(glob, maxsplit=1)[0]))


def paths(repository: Repository, prefix: str) -> Iterator[str]:
    """Paths that begin with ``prefix``, some more than once: what branches show today, then what any commit has.

    A rule counts for old commits too, so a path that no branch shows is still a path.
    """
    for branch in repository.branches():
        for entry in repository.list(branch.name, prefix):
            yield entry.path
    core, start, stop = repository.core, encode_prefix(prefix), after_prefix(encode_prefix(prefix))
    with repository.database.read() as tx:
        in_time = sorted(commits.every(tx, repository.uid), key=lambda commit: (commit.created_at, commit.id))
    lists = metarange_cache.lists(core.store, core.ranges, [commit.metarange for commit in in_time])
    for listed in lists.ranges.values():
        if listed.max_key >= start and (stop is None or listed.min_key < stop):
            for batch in core.ranges.table(listed.id).scan(start, stop):
                yield from (decode_path(key) for key in batch["key"].to_pylist())
