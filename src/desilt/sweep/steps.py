"""The steps of a plan, carried out one after the other."""

from desilt.executors.executor import HERE
from desilt.repository.editor import DELETED
from desilt.repository.protocol import Repository
from desilt.runs.plan import Plan
from desilt.runs.steps import DeleteRefs, EditHistory, FollowMarks, RemoveObjects, TakeCommits, TidyFiles
from desilt.sweep import batches, commits, follow, history, tidy
from desilt.sweep.sweep import Sweep, editor_of


def carry_out(sweep: Sweep) -> dict[str, str]:
    """All of them; what became of the refs that they name."""
    plan, fates = sweep.plan, dict[str, str]()
    for step in plan.steps:
        match step:
            case RemoveObjects():
                batches.remove(sweep, step)
            case TakeCommits():
                commits.take(sweep, step)
            case TidyFiles():
                tidy.tidy(sweep, step)
            case FollowMarks():
                follow.follow(sweep, step)
            case EditHistory():
                fates |= history.edit(sweep, step)
            case DeleteRefs():
                since, trusted = plan.evidence.revision, plan.relies_on
                fates |= editor_of(sweep).delete_refs(sweep.lock, plan.run, step.refs, since, trusted)
    return fates


def fates(repository: Repository, plan: Plan) -> dict[str, str]:
    """What became of a plan's refs, as far as can be seen later."""
    if not plan.refs:
        return {}
    seen = repository.source(HERE).snapshot(repository.clock())
    there = {(branch.name, branch.uid) for branch in seen.branches} | {(tag.name, tag.uid) for tag in seen.tags}
    return {one.name: "kept" if (one.name, one.uid) in there else DELETED for one in plan.refs}
