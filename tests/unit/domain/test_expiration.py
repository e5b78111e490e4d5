"""What expiring a history edits and abandons, on tiny graphs; then on random ones, beside a naive model."""

import itertools
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.domain.expiration import Node, Ref, abandon, after, expire
from desilt.domain.keep_rules import KeepCounts
from desilt.errors import BadRequest, NotFound, Unreadable
from effort import lines

START = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def graph(text, times=None):
    """``a b:a c:a,b`` as nodes: each names its parents after the colon, and is a day younger than the one before."""
    nodes = {}
    for number, word in enumerate(text.split()):
        name, _, above = word.partition(":")
        at = START + (times or {}).get(name, number) * DAY
        nodes[name] = Node(name, tuple(above.split(",")) if above else (), at)
    return nodes


def refs(text):
    """``main=d v1@b``: a branch has ``=``, a tag ``@``."""
    found = []
    for word in text.split():
        kind = "branch" if "=" in word else "tag"
        found.append(Ref(kind, *word.replace("@", "=").split("=")))
    return found


def cut(day):
    return START + day * DAY


def edits(found):
    """``c:a d:a,b``: the commits edited and their parents now."""
    return " ".join(f"{edit.id}:{','.join(edit.new_parents)}" for edit in found.edits)


def gone(found):
    return " ".join(sorted(found.abandoned))


# ---- expiring


@pytest.mark.parametrize(
    ("history", "names", "before", "edited", "abandoned"),
    [
        # nothing to do
        ("r", "main=r", 5, "", ""),
        ("r", "main=r", 0, "", ""),
        ("r a:r b:a", "main=b", -1, "", ""),
        ("r a:r b:a", "main=b", 0, "", ""),
        ("r a:r b:a", "main=b", 1, "", ""),
        ("r a:r b:a", "main=b", 9, "", ""),
        # a line
        ("r a:r b:a", "main=b", 2, "b:r", "a"),
        ("r a:r b:a c:b d:c", "main=d", 3, "c:r", "a b"),
        # refs on the root, on an old commit, on one in the middle of what another abandons
        ("r a:r b:a", "main=b v0@r", 2, "b:r", "a"),
        ("r a:r b:a c:b", "main=c v1@b", 3, "c:r", ""),
        ("r a:r b:a c:b", "main=c v1@a", 3, "c:r", "b"),
        ("r a:r b:a c:b d:b", "main=d v1@a dev=c", 3, "c:r d:r", "b"),
        # merges: old first parent, old second parent, both, both and beside them a young one
        ("r a:r b:r c:b m:a,c", "main=m", 3, "c:r m:r,c", "a b"),
        ("r a:r b:r c:b m:c,a", "main=m", 3, "c:r m:c,r", "a b"),
        ("r a:r b:r m:a,b", "main=m", 3, "m:r", "a b"),
        ("r a:r b:r c:r m:a,c,b", "main=m", 3, "m:r,c", "a b"),
        ("r a:r b:r o:a,b m:o", "main=m", 4, "m:r", "a b o"),
        # two roots: each line ends at its own, a merge of both keeps both
        ("r s a:r b:s c:a d:b", "main=c other=d", 4, "c:r d:s", "a b"),
        ("r s a:r b:s m:a,b", "main=m", 4, "m:r,s", "a b"),
        ("r s a:r b:s o:b,a m:o", "main=m", 5, "m:s,r", "a b o"),
        ("r a:r s m:a,s", "main=m", 2, "m:r,s", "a"),
    ],
)
def test_a_history_before_and_after(history, names, before, edited, abandoned):
    nodes = graph(history)
    found = expire(nodes, refs(names), before=cut(before))
    assert (edits(found), gone(found)) == (edited, abandoned)


def test_before_means_strictly_earlier():
    nodes = graph("r a:r b:a c:b")
    assert edits(expire(nodes, refs("main=c"), before=cut(2))) == "b:r"
    assert edits(expire(nodes, refs("main=c"), before=cut(2) + timedelta(microseconds=1))) == "c:r"


def test_commits_of_one_moment_are_all_young_or_all_old():
    nodes = graph("r a:r b:a c:b d:c", times={"a": 1, "b": 1, "c": 1, "d": 2})
    assert expire(nodes, refs("main=d"), before=cut(1)).edits == ()
    assert edits(expire(nodes, refs("main=d"), before=cut(1.5))) == "d:r"
    same = graph("r a:r b:a", times={"a": 0, "b": 0})
    assert expire(same, refs("main=b"), before=cut(0)).edits == ()


def test_an_edit_says_what_was_and_why():
    nodes = graph("r a:r b:r m:a,b")
    (edit,) = expire(nodes, refs("main=m"), before=cut(3).astimezone(timezone(5 * HOUR))).edits
    assert edit.old_parents == ("a", "b")
    assert edit.why == "parents a, b from before 2026-01-04 00:00:00 UTC"
    assert after(nodes, expire(nodes, refs("main=m"), before=cut(3)))["m"] == Node("m", ("r",), cut(3))


def test_an_old_tip_is_skipped_and_keeps_its_history():
    nodes = graph("r a:r b:a c:r d:c")
    found = expire(nodes, refs("main=d old=b v1@b v0@r"), before=cut(4))
    assert (edits(found), gone(found)) == ("d:r", "c")
    assert found.skipped == {
        ref: f"its tip {ref.target} is from before 2026-01-05 00:00:00 UTC" for ref in refs("old=b v0@r v1@b")
    }
    assert found.pointed == {"b": tuple(refs("old=b v1@b"))}  # the root would stay without a tag


def test_what_no_ref_reached_before_is_not_counted_as_abandoned():
    nodes = graph("r a:r x:a y:x b:a")
    assert gone(expire(nodes, refs("main=b"), before=cut(4))) == "a"
    assert expire(nodes, [], before=cut(4)).abandoned == {}


def test_who_no_longer_reaches_what_was_abandoned():
    found = expire(graph("r a:r b:a c:b d:b"), refs("main=c dev=d v1@d"), before=cut(3))
    assert found.abandoned == {name: tuple(refs("dev=d main=c v1@d")) for name in "ab"}


def test_a_branch_and_a_tag_of_one_name_are_two_refs():
    found = expire(graph("r a:r b:a"), refs("x=b x@a"), before=cut(2), delete_expired_tags=True)
    assert (gone(found), list(found.deleted_refs)) == ("a", refs("x@a"))


# ---- refs that go


def test_old_refs_go_only_when_asked_each_kind_for_itself():
    nodes, names = graph("r a:r b:a c:r d:r"), refs("main=d old=b v1@c")
    tags = expire(nodes, names, before=cut(4), delete_expired_tags=True)
    assert (list(tags.deleted_refs), gone(tags)) == (refs("v1@c"), "c")
    branches = expire(nodes, names, before=cut(4), delete_expired_branches=True)
    assert (list(branches.deleted_refs), gone(branches)) == (refs("old=b"), "a b")
    assert branches.deleted_refs[names[1]] == "its tip b is from before 2026-01-05 00:00:00 UTC"


def test_a_protected_ref_never_goes():
    nodes, names = graph("r a:r b:r"), refs("main=a dev=b")
    found = expire(
        nodes, names, before=cut(9), delete_expired_branches=True, protected={"main": "it is the default branch"}
    )
    assert (list(found.deleted_refs), gone(found)) == (refs("dev=b"), "b")
    assert found.skipped[names[0]].endswith("but it is protected: it is the default branch")


def test_a_protected_name_that_is_no_ref_is_refused():
    with pytest.raises(BadRequest, match="no branch or tag 'mian' to protect"):
        expire(graph("r a:r"), refs("main=a"), before=cut(0), protected={"mian": "default"})


def test_the_last_refs_never_go_all_together():
    with pytest.raises(BadRequest, match="all would go; protect the default branch"):
        expire(graph("r a:r"), refs("main=a"), before=cut(9), delete_expired_branches=True)


def test_an_old_ref_on_a_commit_that_a_rule_keeps_stays():
    nodes, names = graph("r a:r b:a c:b"), refs("main=c v1@a v2@b")
    found = expire(nodes, names, before=cut(3), keep=KeepCounts(last=2), delete_expired_tags=True)
    assert (list(found.deleted_refs), gone(found)) == (refs("v1@a"), "a")
    assert found.skipped[names[2]].endswith("but it is kept: last 2 of 2 on branch 'main'")
    assert found.pointed == {}


def test_a_root_goes_only_with_the_last_ref_of_its_history():
    nodes = graph("r s t:s a:r")
    found = expire(nodes, refs("main=a v1@t"), before=cut(3), delete_expired_tags=True)
    assert gone(found) == "s t"


# ---- keep rules


@pytest.mark.parametrize(
    ("history", "names", "before", "keep", "edited", "abandoned"),
    [
        ("r a:r b:a c:b d:c", "main=d", 4, KeepCounts(last=1), "d:r", "a b c"),
        ("r a:r b:a c:b d:c", "main=d", 4, KeepCounts(last=3), "b:r", "a"),
        ("r a:r b:a c:b d:c", "main=d", 4, KeepCounts(last=9), "", ""),
        # shared history: what one ref keeps is there for all, and is the parent of all
        ("r a:r b:a c:b d:c e:b", "main=d dev=e", 4, KeepCounts(last=2), "b:r", "a"),
        ("r a:r b:a c:b d:c f:d e:d", "main=f dev=e", 5, KeepCounts(last=2), "d:r", "a b c"),
        ("r a:r b:a c:b d:c e:a f:e", "main=d dev=f", 4, KeepCounts(last=2), "c:r e:r", "a b"),
        # an old ref is skipped: no rule is asked of it
        ("r a:r b:a c:b d:r", "main=d v1@c", 4, KeepCounts(last=2), "", ""),
        ("r a:r b:a c:b d:c", "main=d v1@b", 4, KeepCounts(last=1), "d:r", "c"),
        # an old ref above a kept commit: its history is the kept one's
        ("r a:r b:a c:b d:b", "main=d v1@c", 4, KeepCounts(last=2), "b:r", "a"),
        # rules follow first parents: y came by a merge and was never the state of main
        ("r a:r y:r m:a,y", "main=m", 3, KeepCounts(last=2), "m:a,r", "y"),
        ("r a:r y:r m:a,y", "main=m", 3, KeepCounts(last=3), "m:a,r", "y"),
        # nearest kept ancestors through a merge that is not kept (o): both of them
        ("r a:r b:r o:a,b p:o m:p x:b z:a", "main=m dev=x fix=z", 5, KeepCounts(last=2), "p:a,b", "o"),
        # not one that another descends from (r, by way of y)
        ("r k:r y:r o:k,y p:o m:p x:k", "main=m dev=x", 5, KeepCounts(last=2), "p:k", "o y"),
        # but always the one on the first parents' line (k), or the line would not be the line it was
        ("r k:r l:k o:k,l p:o m:p x:k y:l", "main=m dev=x fix=y", 5, KeepCounts(last=2), "p:k,l", "o"),
        # a merge stays one: its own parents are not held against each other
        ("r k:r y:r o:k,y m:o x:k", "main=m dev=x", 4, KeepCounts(last=2), "o:k,r", "y"),
    ],
)
def test_a_history_with_keep_rules(history, names, before, keep, edited, abandoned):
    found = expire(graph(history), refs(names), before=cut(before), keep=keep)
    assert (edits(found), gone(found)) == (edited, abandoned)


HOURS = {"r": 0, "a": 1, "b": 23, "c": 24, "d": 95, "e": 97, "f": 31 * 24, "g": 365 * 24 - 1, "h": 365 * 24}


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (KeepCounts(daily=1), "h"),
        (KeepCounts(daily=4), "h g f e"),
        (KeepCounts(daily=6), "h g f e d c"),
        (KeepCounts(daily=7), "h g f e d c b"),
        (KeepCounts(daily=99), "h g f e d c b"),
        (KeepCounts(weekly=1), "h"),  # 31 December and 1 January: one ISO week
        (KeepCounts(weekly=3), "h f e"),  # Sunday 1 February; then Monday the 5th of January, an hour past midnight
        (KeepCounts(weekly=4), "h f e d"),
        (KeepCounts(monthly=2), "h g"),
        (KeepCounts(monthly=9), "h g f e"),
        (KeepCounts(yearly=1), "h"),
        (KeepCounts(yearly=9), "h g"),
        (KeepCounts(last=2, monthly=3), "h g f"),
        (KeepCounts(last=1, daily=2, yearly=2), "h g"),
    ],
)
def test_the_newest_of_each_bucket_is_kept(keep, kept):
    nodes = graph("r a:r b:a c:b d:c e:d f:e g:f h:g", {name: hours / 24 for name, hours in HOURS.items()})
    found = expire(nodes, refs("main=h"), before=nodes["h"].created_at, keep=keep)
    assert {"h", *found.kept} == set(kept.split())


def test_a_bucket_is_utcs_whatever_zone_a_commit_was_made_in():
    east = timezone(5 * HOUR)
    times = {"r": cut(0), "a": cut(1), "b": cut(2) - HOUR, "c": cut(2), "d": cut(9)}
    nodes = {name: Node(name, node.parents, times[name]) for name, node in graph("r a:r b:a c:b d:c").items()}
    there = {name: Node(name, node.parents, node.created_at.astimezone(east)) for name, node in nodes.items()}
    for one in (nodes, there):
        assert expire(one, refs("main=d"), before=cut(9), keep=KeepCounts(daily=3)).kept.keys() == {"c", "b"}


@pytest.mark.parametrize(("keep", "apart"), [(KeepCounts(weekly=2), 371), (KeepCounts(monthly=2), 365)])
def test_the_same_week_or_month_of_another_year_is_another_bucket(keep, apart):
    nodes = graph("r a:r b:a", times={"a": 10, "b": 10 + apart})
    assert expire(nodes, refs("main=b"), before=cut(10 + apart), keep=keep).kept.keys() == {"a"}


def test_the_reason_does_not_depend_on_the_order_of_refs():
    nodes, names = graph("r a:r b:a c:a"), refs("main=b dev=c")
    for order in (names, names[::-1]):
        kept = expire(nodes, order, before=cut(2), keep=KeepCounts(last=2)).kept
        assert kept == {"a": "last 2 of 2 on branch 'dev'"}


def test_of_commits_of_one_moment_the_one_nearest_the_tip_is_kept():
    nodes = graph("r z:r y:z x:y w:x", times={"z": 1, "y": 1, "x": 1, "w": 9})
    assert expire(nodes, refs("main=w"), before=cut(9), keep=KeepCounts(daily=2)).kept == {
        "x": "daily 2 of 2 on branch 'main'"
    }


@pytest.mark.parametrize(("rules", "message"), [({}, "keep nothing"), ({"daily": -1, "last": 2}, "keep daily is -1")])
def test_rules_that_keep_nothing_are_refused(rules, message):
    with pytest.raises(BadRequest, match=message):
        KeepCounts(**rules)


def test_the_same_rules_again_keep_the_same_where_a_merged_line_was_newer():
    """Were l, which is newer, to become the first parent of m, main's newest of January would be l, and k would go."""
    nodes = graph("r k:r l:k o:k,l m:o y:l", times={"k": 1, "l": 2, "o": 59, "m": 60, "y": 60})
    names, asked = refs("main=m fix=y"), {"before": cut(60), "keep": KeepCounts(monthly=2)}
    first = expire(nodes, names, **asked)
    assert (edits(first), first.kept.keys()) == ("m:k,l", {"k", "l"})
    assert expire(after(nodes, first), names, **asked).edits == ()


# ---- abandoning a run


@pytest.mark.parametrize(
    ("history", "first", "last", "edit", "parents"),
    [
        ("r b:r x:b a:x n:a", "x", "x", "a", "b"),
        ("r z:r y:z x:y n:x", "x", "z", "n", "r"),
        ("r b:r x:b s:b a:x,s n:a", "x", "x", "a", "b,s"),  # the commit above is a merge
        ("r b:r s:r x:b,s a:x n:a", "x", "x", "a", "b,s"),  # the run has a merge: what it brought in stays
        ("r b:r s:r t:s y:b,s x:y,t a:x n:a", "x", "y", "a", "b,t"),  # t brings s with it
        ("r b:r x:b s:x a:x,s n:a", "x", "x", "a", "b,s"),  # another way to the run: not this line's affair
    ],
)
def test_a_run_is_abandoned(history, first, last, edit, parents):
    nodes, names = graph(history), refs("main=n v1@r")
    found = abandon(nodes, names, names[0], first, last)
    assert (found.id, ",".join(found.new_parents)) == (edit, parents)
    assert found.old_parents == nodes[edit].parents
    assert found.why == f"{first} to {last} abandoned in branch 'main'"
    before, now = reach(nodes, "n"), reach(after(nodes, found), "n")
    run = {name for name in line(nodes, "n") if nodes[last].created_at <= nodes[name].created_at} - set(
        itertools.takewhile(lambda name: name != first, line(nodes, "n"))
    )
    assert before - run <= now <= before


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        ("b", "r", "commit r is the root of branch 'main', which stays; end above it"),
        ("d", "b", "commit d is the tip of branch 'main', which stays; begin below it"),
        ("c", "b", "commit b is what tag 'v1' points to; leave it out, or delete that ref first"),
        ("b", "c", "commit b is older than c; name the newest first"),
        ("c", "s", "commit s is not on the line of first parents of branch 'main'"),
        ("nope", "c", "commit nope is not on the line"),
    ],
)
def test_a_run_that_may_not_be_abandoned(first, last, message):
    names = refs("main=d v1@b dev=s")
    with pytest.raises(BadRequest, match=message):
        abandon(graph("r a:r b:a s:a c:b,s d:c"), names, names[0], first, last)


def test_a_ref_that_is_not_there_has_nothing_to_abandon():
    with pytest.raises(NotFound, match="no branch 'main'"):
        abandon(graph("r a:r b:a"), refs("dev=b"), Ref("branch", "main", "b"), "a", "a")


# ---- histories that cannot be


@pytest.mark.parametrize(
    ("history", "names", "message"),
    [
        ("r a:c b:a c:b", "main=c", "descend from themselves"),
        ("r a:a", "main=a", "descend from themselves"),
        ("r a:x", "main=a", "parent x, which is not there"),
        ("r a:r", "v1@x", "tag 'v1' points to commit x, which is not there"),
        ("r a:r", "main=a main=r", "branch 'main' points to two commits"),
    ],
)
def test_a_history_with_a_loop_a_gap_or_two_answers_is_refused(history, names, message):
    with pytest.raises(Unreadable, match=message):
        expire(graph(history), refs(names), before=cut(1))
    with pytest.raises(Unreadable, match=message):
        abandon(graph(history), refs(names), refs(names)[0], "a", "a")


def test_no_young_commit_is_lost_where_times_fall():
    nodes = graph("r a:r b:a c:b", times={"a": 9, "b": 1, "c": 9})
    assert edits(expire(nodes, refs("main=c"), before=cut(5))) == "c:a"
    with pytest.raises(Unreadable, match="commit a is not from before"):
        expire(graph("r a:r b:a c:r", times={"a": 9, "b": 1, "c": 9}), refs("main=c v1@b"),
               before=cut(5), delete_expired_tags=True)  # fmt: skip


def test_the_work_of_a_long_history_with_many_refs_is_that_of_its_commits_and_refs():
    """A walk from each ref would be twenty-five million commits."""
    size = 50_000
    nodes = {str(n): Node(str(n), (str(n - 1),) if n else (), START + n * HOUR) for n in range(size)}
    names = [Ref("branch", f"b{n}", str(size - 1 - n)) for n in range(500)]
    found = []
    before, keep = nodes[str(size - 600)].created_at, KeepCounts(last=3, daily=7, yearly=99)
    assert lines(lambda: found.append(expire(nodes, names, before=before, keep=keep))) < 200 * (size + len(names))
    assert len(found[0].abandoned) > 49_000


# ---- random histories


def line(nodes, tip):
    """The first parents from ``tip`` down."""
    while True:
        yield tip
        if not nodes[tip].parents:
            return
        tip = nodes[tip].parents[0]


def reach(nodes, tip):
    found = {tip}
    for parent in nodes[tip].parents:
        found |= reach(nodes, parent)
    return found


def naive_kept(nodes, names, before, keep):
    """Restic's way: go down the line, and take a commit whenever its bucket is new."""
    found = set()
    for ref in names:
        if nodes[ref.target].created_at >= before:
            own = list(line(nodes, ref.target))
            found.update(own[: keep.last])
            for form, count in [
                ("%F %H", keep.hourly),
                ("%F", keep.daily),
                ("%G %V", keep.weekly),
                ("%Y %m", keep.monthly),
                ("%Y", keep.yearly),
            ]:
                seen = {}
                for name in own:
                    seen.setdefault(nodes[name].created_at.strftime(form), name)
                found.update(list(seen.values())[:count])
    return found


def naive_expire(nodes, names, before, keep):
    """As the seed has it: ref after ref, each on what the ones before it left; sets of ancestors by recursion."""
    nodes, found = dict(nodes), naive_kept(nodes, names, before, keep) if keep else set()
    stays = {name for name, node in nodes.items() if node.created_at >= before or not node.parents} | found
    for ref in names:
        if nodes[ref.target].created_at < before:
            continue
        for name in sorted(reach(nodes, ref.target) & stays):
            parents = []
            for parent in nodes[name].parents:
                near = reach(nodes, parent) & stays
                first = next(one for one in line(nodes, parent) if one in stays)
                parents += [first, *sorted(a for a in near if not any(a != b and a in reach(nodes, b) for b in near))]
            if not stays.issuperset(nodes[name].parents):
                nodes[name] = Node(name, tuple(dict.fromkeys(parents)), nodes[name].created_at)
    return nodes


def seed_expire(nodes, names, before):
    """The seed's pseudo-code, line by line, for commits with one parent."""
    nodes = dict(nodes)
    for ref in names:
        if nodes[ref.target].created_at < before:
            continue
        ancestry = list(line(nodes, ref.target))
        root = ancestry[-1]
        editable = [name for name in ancestry if nodes[name].created_at >= before][-1]
        if editable != root:
            nodes[editable] = Node(editable, (root,), nodes[editable].created_at)
    return nodes


def plain(nodes):
    """First parent, and the others as a set: the naive model does not order them."""
    return {name: (node.parents[:1], frozenset(node.parents)) for name, node in nodes.items()}


@st.composite
def histories(draw, most_parents=3):
    nodes, at = {}, START
    for number in range(draw(st.integers(1, 12))):
        at += draw(st.sampled_from([0, 1, 1, 20, 24 * 4, 24 * 20, 24 * 200])) * HOUR
        above = [f"{n:02}" for n in range(number)]
        size = st.sampled_from([0, *[1] * 8, *range(2, most_parents + 1), *range(2, most_parents + 1)])
        count = min(draw(size), number)
        near = st.sampled_from([*above[-3:], *above]) if above else st.nothing()
        parents = draw(st.lists(near, min_size=count, max_size=count, unique=True))
        nodes[f"{number:02}"] = Node(f"{number:02}", tuple(parents), at)
    tips = draw(st.lists(st.sampled_from(sorted(nodes)), min_size=1, max_size=5))
    names = [Ref(draw(st.sampled_from(["branch", "tag"])), f"ref{n}", tip) for n, tip in enumerate(tips)]
    before = (
        draw(st.sampled_from([node.created_at for node in nodes.values()])) + draw(st.sampled_from([-1, 0, 1])) * HOUR
    )
    return nodes, names, max(before, START)


counts = st.sampled_from([0, 0, 1, 2, 3])
keeps = st.none() | st.tuples(*[counts] * len(fields(KeepCounts))).filter(any).map(lambda given: KeepCounts(*given))


@settings(max_examples=300, deadline=None)
@given(histories(), keeps, st.randoms(use_true_random=False))
def test_any_history_expires_as_it_should(history, keep, random):
    nodes, names, before = history
    found = expire(nodes, names, before=before, keep=keep)
    now = after(nodes, found)
    young = {name for name, node in nodes.items() if node.created_at >= before}
    roots = {name for name, node in nodes.items() if not node.parents}

    # acyclic: every edge goes down to an older commit; so every way ends, and it ends at what was a root
    assert all(parent < name for name, node in now.items() for parent in node.parents)
    assert {name for name, node in now.items() if not node.parents} == roots
    # young and kept commits and roots stay with the refs that reached them, tips with their own
    for ref in names:
        was, is_now = reach(nodes, ref.target), reach(now, ref.target)
        assert was & (young | found.kept.keys() | roots) <= is_now <= was
        # a ref's line is what it was, with gaps
        assert [name for name in line(nodes, ref.target) if name in set(line(now, ref.target))] == [
            *line(now, ref.target)
        ]
    # only what stays is edited, and nothing but parents
    assert {edit.id for edit in found.edits} <= young | found.kept.keys()
    assert all((now[name].id, now[name].created_at) == (name, nodes[name].created_at) for name in nodes)
    assert all(edit.old_parents == nodes[edit.id].parents != edit.new_parents for edit in found.edits)
    # what was abandoned: reached before, by whom, and by nobody now
    was = {name: tuple(sorted(ref for ref in names if name in reach(nodes, ref.target))) for name in nodes}
    left = set().union(*(reach(now, ref.target) for ref in names))
    assert found.abandoned == {name: refs for name, refs in was.items() if refs and name not in left}
    # any order, with a naive model beside it
    order = random.sample(names, len(names))
    assert expire(nodes, order, before=before, keep=keep) == found
    assert plain(naive_expire(nodes, order, before, keep)) == plain(now)
    if keep:
        assert found.kept.keys() == naive_kept(nodes, names, before, keep) - young
    # again: nothing
    again = expire(now, names, before=before, keep=keep)
    assert (again.edits, again.abandoned) == ((), {})
    assert (again.kept, again.skipped, again.pointed) == (found.kept, found.skipped, found.pointed)


@settings(max_examples=150, deadline=None)
@given(histories(), keeps, st.sets(st.integers(0, 4)), st.booleans(), st.booleans())
def test_any_refs_that_go_are_old_and_take_nothing_young_along(history, keep, safe, tags, branches):
    nodes, names, before = history
    protected = {ref.name: "held" for number, ref in enumerate(names) if number in safe}
    asked = {"keep": keep, "delete_expired_tags": tags, "delete_expired_branches": branches, "protected": protected}
    try:
        found = expire(nodes, names, before=before, **asked)
    except BadRequest:
        assert not protected
        assert all(nodes[ref.target].created_at < before for ref in names)
        return
    plainly = expire(nodes, names, before=before, keep=keep)
    assert (found.edits, found.kept) == (plainly.edits, plainly.kept)
    wanted = {"tag": tags, "branch": branches}
    assert found.deleted_refs.keys() == {
        ref for ref in names
        if nodes[ref.target].created_at < before and wanted[ref.kind]
        and ref.name not in protected and ref.target not in found.kept
    }  # fmt: skip
    assert found.skipped.keys() | found.deleted_refs.keys() == plainly.skipped.keys()
    now, staying = after(nodes, found), [ref for ref in names if ref not in found.deleted_refs]
    left = set().union(*(reach(now, ref.target) for ref in staying))
    assert found.abandoned.keys() == set().union(*(reach(nodes, ref.target) for ref in names)) - left
    assert not any(nodes[name].created_at >= before or name in found.kept for name in found.abandoned)
    if tags and branches and not protected:
        again = expire(now, staying, before=before, **asked)
        assert (again.edits, again.abandoned, again.deleted_refs) == ((), {}, {})


@settings(max_examples=150, deadline=None)
@given(histories(most_parents=1), st.randoms(use_true_random=False))
def test_without_merges_it_is_the_seeds_pseudo_code_in_any_order(history, random):
    nodes, names, before = history
    order = random.sample(names, len(names))
    assert seed_expire(nodes, order, before) == after(nodes, expire(nodes, names, before=before))
