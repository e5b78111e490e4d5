"""What is stored, as far as a run looks at it: listed by us or by somebody else, and what an earlier run left."""

from collections.abc import Mapping, Sequence

from desilt.errors import BadRequest
from desilt.inventory import supplied
from desilt.inventory.listing import Inventory, Listed, total
from desilt.inventory.s3 import Given
from desilt.jobs.gc.options import Options, check
from desilt.jobs.gc.watermark import Saved
from desilt.jobs.job import Work


def asked_for(work: Work[Options]) -> Given | None:
    """The inventory that is supplied, if any. It, and a branch that is named, must be there before any work is done."""
    repository, options = work.repository, work.options
    check(options)
    if options.branch is not None:
        names = {branch.uid: branch.name for branch in work.source.snapshot(work.run.now).branches}
        chosen(options.branch, names, work.source.groups())
    if options.inventory is None:
        return None
    if options.branch is not None:
        raise BadRequest("--inventory is for the whole repository; leave --branch out")
    return supplied.found(
        options.inventory, store=repository.store, now=work.run.now, max_age=options.max_inventory_age
    )


def listed(work: Work[Options], branches: list[str], saved: Saved, given: Given | None) -> Inventory:
    """What is stored: all of it, or what is new since the last run, or what somebody else listed."""
    source, options = work.source, work.options
    if given is None or options.inventory is None:
        groups = None if options.branch is None else branches
        return source.inventory(work.run, groups=groups, newer_than=saved.settled)
    taken = supplied.read(
        work.executor,
        given,
        uri=options.inventory,
        store=work.repository.store,
        prefix=work.repository.prefix,
        data=work.repository.layout.data,
        folder=f"{work.run.folder}inputs/inventory/",
    )
    return Inventory(taken.listed, source.folders(branches))


def looked_at(stored: Sequence[Listed], saved: Saved) -> int:
    """How many objects get a verdict."""
    return total(stored)[0] + sum(file.rows for file in saved.pending)


def chosen(branch: str, names: Mapping[str, str], stored: list[str]) -> str:
    """The uid of a branch, by its name; one that was deleted, by its uid."""
    by_name = {name: uid for uid, name in names.items()}
    if branch in by_name:
        return by_name[branch]
    if branch in stored:
        return branch
    raise BadRequest(
        f"{branch!r} is neither a branch nor the uid of a deleted one, whose objects lie together; "
        "see `desilt lake branches`, and leave --branch out where all branches share one folder"
    )
