"""What expiration must leave of a history, the slow and obvious way."""

from hypothesis import strategies as st

from desilt.domain.keep_rules import KeepCounts
from desilt.jobs import holds
from desilt.records.holds import HoldKind
from desilt.testing import oracle

KEEPS = st.one_of(
    st.none(),
    st.none(),
    st.builds(KeepCounts, last=st.integers(1, 4)),
    st.builds(KeepCounts, daily=st.integers(1, 3)),
    st.builds(KeepCounts, last=st.integers(0, 2), weekly=st.integers(1, 2), monthly=st.integers(0, 1)),
)


def tips(repo):
    """Where refs point, holds too."""
    found = {("branch", one.name): one.head for one in repo.branches()}
    found |= {("tag", one.name): one.target for one in repo.tags()}
    orders = [one for one in holds.every(repo) if one.kind is HoldKind.REF and one.counts(repo.clock())]
    return found | {("hold", one.id): one.value for one in orders}


def below(made, tip):
    return oracle.below(made, [tip])


def buckets(at):
    return {
        "last": object(),
        "hourly": (at.date(), at.hour),
        "daily": at.date(),
        "weekly": at.isocalendar()[:2],
        "monthly": (at.year, at.month),
        "yearly": at.year,
    }


def kept(made, tip, keep):
    """On the line of first parents, the newest commit of each of so many buckets."""
    line = [made[tip]]
    while line[-1].parents:
        line.append(made[line[-1].parents[0]])
    found = set()
    for rule in ("last", "hourly", "daily", "weekly", "monthly", "yearly"):
        seen = []
        for commit in line:
            bucket = buckets(commit.created_at)[rule]
            if bucket not in seen and len(seen) < getattr(keep, rule):
                seen.append(bucket)
                found.add(commit.id)
    return found


def answer(made, refs, wish):
    """By ref, the commits that it must reach afterwards; None where at least that it does not gain any is known."""
    young = {name for name, commit in made.items() if commit.created_at >= wish.before}
    stays = young | {name for name, commit in made.items() if not commit.parents}
    for (kind, _), tip in refs.items():
        if wish.keep and kind != "hold" and tip in young:
            stays |= kept(made, tip, wish.keep)
    return {
        ref: below(made, tip) & stays if tip in young else None if wish.keep else below(made, tip)
        for ref, tip in refs.items()
    }


class Before:
    """A history as it was, to be compared with what became of it."""

    def __init__(self, repo):
        self.repo, self.made, self.refs = repo, oracle.history(repo), tips(repo)

    def compare(self, wish=None, *, told=None):
        """Commits are what they were but for their parents, and refs are where they were, and reach no more."""
        made, refs = oracle.history(self.repo), tips(self.repo)
        assert made.keys() == self.made.keys()
        for name, commit in made.items():
            was = self.made[name]
            assert (commit.metarange, commit.created_at, commit.generation) == (
                was.metarange,
                was.created_at,
                was.generation,
            )
            assert commit.made_from == was.made_from
            assert set(commit.parents) <= below(self.made, name) - {name}
            assert bool(commit.parents) == bool(was.parents)  # what was no root is none now
            assert len(set(commit.parents)) == len(commit.parents)
            assert all(made[parent].created_at < commit.created_at for parent in commit.parents)  # so there is no loop
        gone = self.refs.keys() - refs.keys()
        assert refs == {ref: tip for ref, tip in self.refs.items() if ref not in gone}
        for tip in refs.values():
            assert below(made, tip) <= below(self.made, tip)
        if wish is None:
            return
        wanted = answer(self.made, self.refs, wish)
        for ref, tip in refs.items():
            if wanted[ref] is not None:
                assert below(made, tip) == wanted[ref], ref
        for kind, name in gone:
            assert {"branch": wish.delete_branches, "tag": wish.delete_tags}[kind]
            assert self.made[self.refs[kind, name]].created_at < wish.before
            assert name != "main"
        if told is not None:
            assert set(told) == {name for _, name in gone}
