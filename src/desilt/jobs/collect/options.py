"""What a collection can be told."""

from dataclasses import dataclass
from datetime import timedelta

from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import BadRequest
from desilt.jobs.job import DROPPED_FOR
from desilt.repository.protocol import Repository

LEAST_AGE = timedelta(hours=1)
RISK = (
    "without --unsafe it must be at least 1h: whoever has a session open writes files that nothing refers to until it "
    "is committed, and loses those that are older"
)


@dataclass(frozen=True, slots=True)
class Options:
    """What a run of it can be told besides."""

    older_than: timedelta | None = None  # None: as long as an upload or a session may take
    unreached_for: timedelta = timedelta(days=1)  # commits that something released since then stay
    keep_runs: timedelta = timedelta(days=90)  # the folders of runs that are younger
    dropped_for: timedelta = DROPPED_FOR  # objects that something pointed to since then stay
    unsafe: bool = False  # in repositories of Icechunk: it may be less than an hour
    accept_missing: int = 0  # so many objects may be referred to, and be lost
    backups_older_than: timedelta | None = None  # None: all of them stay


def limit(options: Options, repository: Repository) -> timedelta:
    """How old something must be."""
    if options.older_than is None:
        return repository.grace + (CLOCK_MARGIN if repository.assets is None else timedelta(0))
    if options.older_than < LEAST_AGE and not options.unsafe:
        if repository.assets is not None:
            raise BadRequest(f"--older-than is less than 1h; {RISK}")
        raise BadRequest("--older-than is less than 1h; a commit that is being written may take that long")
    return options.older_than


USUAL = Options()


def check(repository: Repository, options: Options) -> None:
    """Refuse what only means something in a repository of another kind."""
    if repository.assets is None and (options.unsafe or options.accept_missing or options.backups_older_than):
        raise BadRequest(
            "--unsafe, --accept-missing and --backups-older-than are for Icechunk repositories; leave them out here"
        )
    if repository.assets is not None and (options.unreached_for, options.dropped_for) != (
        USUAL.unreached_for,
        USUAL.dropped_for,
    ):
        raise BadRequest(
            "an Icechunk repository does not tell when a ref left a snapshot, or a session a chunk; leave "
            "--unreached-for and --dropped-for out, and say --older-than"
        )
