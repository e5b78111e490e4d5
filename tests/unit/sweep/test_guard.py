"""A guard says no at its exact boundary, by the name of the fact, and says what to do."""

import inspect
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt import errors
from desilt.cli.job import with_limits
from desilt.domain.run import new_run
from desilt.errors import (
    BadRequest,
    FirstRun,
    HistoryLost,
    NothingHeld,
    OtherRepository,
    OutgrownPolicy,
    PolicyReplaced,
    Refused,
    Shrinks,
    StalePlan,
    TooMany,
    TooMuch,
    WentBack,
    WrongTime,
)
from desilt.records.ledger import RunRow, RunState
from desilt.repository.gate import Safety
from desilt.repository.snapshot import Revision
from desilt.runs.plan import ONE_BRANCH, Evidence, Plan
from desilt.runs.report import Amount
from desilt.runs.steps import Action, EditHistory, PlanFile, RemoveObjects
from desilt.sweep.guard import Situation, Unfit, guard, objections, passing, row
from desilt.sweep.limits import Limits

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
MS = timedelta(milliseconds=1)  # as fine as the id of a run
TEN_MINUTES = timedelta(minutes=10)
TEN = Amount(10, 10)
POLICY = "older than 1 day, 0:10:00"
MEASURE = "stored objects"
DAY = timedelta(days=1)
EVIDENCE = {one.name for one in fields(Evidence)}


def plan(*, made_at=NOW, objects=3, size=3, stored=TEN, **more):
    run = new_run("gc", now=made_at, started_at=made_at, entropy=b"test").id
    files = (PlanFile("plan/0.parquet", objects, size, 1000, ()),) if objects else ()
    seen = {"policy": POLICY, "revision": Revision(7, "a mark"), "commits": 2, "held": 5, "measure": MEASURE}
    more |= {"period": more["period"] * TICK} if isinstance(more.get("period"), int) else {}  # as a ledger has it
    of_evidence = {name: more.pop(name) for name in list(more) if name in EVIDENCE}
    made = Plan(
        run=run,
        job="gc",
        now=made_at,
        repository="uid",
        safety=Safety.ATOMIC,
        action=Action.DELETE,
        batch=1000,
        evidence=Evidence(stored=stored, **{**seen, **of_evidence}),
        steps=(RemoveObjects(files), *more.pop("steps", ())),
    )
    return replace(made, **more)


def earlier(*, at=NOW - timedelta(days=30), ended_at=None, **more):
    """A run of this policy that removed something."""
    row = RunRow("an earlier run", "gc", POLICY, "delete", at, ended_at, RunState.SWEPT, 1, 1)
    return replace(row, **more)


def situation(**more):
    seen = Situation(
        now=NOW,
        store_now=NOW,
        repository="uid",
        name="demo",
        policy=POLICY,
        runs=(earlier(),),
        recent=Amount(),
        same_past=True,
        lost="",
    )
    return replace(seen, **more)


def passes(made=None, limits=None, seen=None, *, resuming=False):
    assert guard(made or plan(), limits or Limits(), seen or situation(), resuming=resuming) is None


def refused(kind, made=None, limits=None, seen=None, *, resuming=False):
    """The one refusal that is expected, of this very class."""
    with pytest.raises(Refused) as raised:
        passes(made, limits, seen, resuming=resuming)
    assert type(raised.value) is kind
    assert raised.value.exit_code == 10
    return str(raised.value)


def test_a_plan_that_nothing_speaks_against_passes():
    passes()


# ---- clocks


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("resuming", [False, True])
def test_clocks_may_be_ten_minutes_apart_and_no_more(sign, resuming):
    passes(seen=situation(store_now=NOW + sign * TEN_MINUTES), resuming=resuming)
    text = refused(WrongTime, seen=situation(store_now=NOW + sign * (TEN_MINUTES + TICK)), resuming=resuming)
    assert "the object store's" in text
    assert "mend" in text


@pytest.mark.parametrize("field", ["started_at", "ended_at"])
@pytest.mark.parametrize("resuming", [False, True])
def test_a_clock_that_is_behind_the_last_run_is_wrong(field, resuming):
    passes(seen=situation(runs=(earlier(), earlier(**{field: NOW + TEN_MINUTES}))), resuming=resuming)
    ahead = situation(runs=(earlier(), earlier(**{field: NOW + TEN_MINUTES + TICK})))
    assert "the last run was at" in refused(WrongTime, seen=ahead, resuming=resuming)


def test_the_latest_of_all_runs_counts_whatever_their_order():
    late = earlier(ended_at=NOW + timedelta(hours=1))
    for runs in ((late, earlier()), (earlier(), late)):
        refused(WrongTime, seen=situation(runs=runs))


# ---- the plan's age


@pytest.mark.parametrize("resuming", [False, True])
def test_a_plan_may_be_as_old_as_the_limit_and_no_older(resuming):
    day = timedelta(days=1)
    passes(plan(made_at=NOW - day), resuming=resuming)
    text = refused(StalePlan, plan(made_at=NOW - day - MS), resuming=resuming)
    assert "plan again" in text
    assert "--max-plan-age" in text
    passes(plan(made_at=NOW - 9 * day), Limits(max_plan_age=9 * day), resuming=resuming)
    refused(StalePlan, plan(made_at=NOW - 9 * day - MS), Limits(max_plan_age=9 * day), resuming=resuming)


@pytest.mark.parametrize("resuming", [False, True])
def test_a_plan_from_the_future_is_refused_beyond_what_clocks_may_differ(resuming):
    passes(plan(made_at=NOW + TEN_MINUTES), resuming=resuming)
    text = refused(WrongTime, plan(made_at=NOW + TEN_MINUTES + MS), resuming=resuming)
    assert "the plan was made at" in text


def test_the_age_counts_from_when_the_plan_was_made_not_from_the_moment_it_judged_by():
    passes(plan(now=NOW - timedelta(days=100)))
    refused(StalePlan, plan(made_at=NOW - timedelta(days=2), now=NOW))


# ---- what the database remembers


@pytest.mark.parametrize("resuming", [False, True])
@pytest.mark.parametrize("limits", [Limits(), Limits(after_restore=True)])
def test_a_plan_from_a_past_that_the_database_has_no_longer_is_never_swept(resuming, limits):
    text = refused(HistoryLost, plan(), limits, situation(same_past=False), resuming=resuming)
    assert "no longer has" in text
    assert "plan again" in text


@pytest.mark.parametrize("resuming", [False, True])
def test_a_database_older_than_some_plan_in_the_store_knows_too_little(resuming):
    old = situation(lost="the database does not know generation 10")
    text = refused(WentBack, seen=old, resuming=resuming)
    assert "--after-restore" in text
    passes(limits=Limits(after_restore=True), seen=old, resuming=resuming)


# ---- what it was told to do


@pytest.mark.parametrize("resuming", [False, True])
def test_a_plan_for_another_repository_or_policy_is_refused(resuming):
    everything = Limits(timedelta(days=999), 1.0, None, True, True, True)
    assert "repository" in refused(OtherRepository, plan(repository="other"), everything, resuming=resuming)
    text = refused(PolicyReplaced, plan(policy="older than 1 hour"), everything, resuming=resuming)
    assert POLICY in text
    assert "'older than 1 hour'" in text
    assert "plan again" in text


# ---- limits


def test_nothing_held_is_refused_unless_allowed():
    assert "--allow-empty" in refused(NothingHeld, plan(held=0))
    passes(plan(held=1))
    passes(plan(held=0), Limits(allow_empty=True))


def test_as_many_objects_as_the_limit_pass_and_one_more_does_not():
    passes(plan(objects=3), Limits(max_objects=3))
    text = refused(TooMany, plan(objects=3), Limits(max_objects=2))
    assert "3 objects" in text
    assert "--max-objects" in text
    refused(TooMany, plan(objects=1), Limits(max_objects=0))


def test_a_share_of_objects_at_the_limit_passes_and_one_more_object_does_not():
    passes(plan(objects=30, size=0, stored=Amount(100, 100)))
    text = refused(TooMuch, plan(objects=31, size=0, stored=Amount(100, 100)))
    assert "31 of 100 objects" in text
    assert "--max-share" in text


def test_a_share_of_bytes_at_the_limit_passes_and_one_more_byte_does_not():
    passes(plan(objects=1, size=300, stored=Amount(100, 1000)))
    assert "301 of 1,000 bytes" in refused(TooMuch, plan(objects=1, size=301, stored=Amount(100, 1000)))


def test_a_wider_share_is_asked_for_in_so_many_words():
    everything = plan(objects=10, size=10, stored=Amount(10, 10))
    refused(TooMuch, everything)
    passes(everything, Limits(max_share=1.0))
    refused(TooMuch, plan(objects=1, size=0, stored=Amount(10**9, 0)), Limits(max_share=0.0))


def test_what_went_within_a_day_counts_along():
    """Of 100 objects 10 went: 20 more of the 90 make 30 of 100, one more is too much."""
    seen = situation(recent=Amount(10, 0))
    passes(plan(objects=20, size=0, stored=Amount(90, 100)), seen=seen)
    text = refused(TooMuch, plan(objects=21, size=0, stored=Amount(90, 100)), seen=seen)
    assert "10 went in the last day" in text
    seen = situation(recent=Amount(0, 100))
    passes(plan(objects=1, size=200, stored=Amount(90, 900)), seen=seen)
    assert "bytes" in refused(TooMuch, plan(objects=1, size=201, stored=Amount(90, 900)), seen=seen)


def test_a_clock_that_is_behind_what_was_done_here_is_wrong():
    seen = situation(last_trace=NOW + timedelta(minutes=11))
    assert "something was done here at" in refused(WrongTime, seen=seen)
    passes(seen=seen, limits=Limits(clock_is_right=True))
    passes(seen=situation(last_trace=NOW + timedelta(minutes=9)))


@pytest.mark.parametrize("share", [-0.1, 1.1, 48, float("nan"), float("inf")])
def test_a_limit_is_a_share_or_none(share):
    with pytest.raises(BadRequest, match="give a share from 0 to 1"):
        Limits(max_share=share)


def test_what_other_plans_take_before_counts_as_if_it_had_gone():
    """Of 100 objects 10 are to go before: 20 more make 30 of 100, as above."""
    seen = situation(before=Amount(10, 0))
    passes(plan(objects=20, size=0, stored=Amount(100, 100)), seen=seen)
    refused(TooMuch, plan(objects=21, size=0, stored=Amount(100, 100)), seen=seen)
    run = earlier(at=NOW - timedelta(days=5), stored_objects=110, stored_bytes=100, measure=MEASURE)
    assert "110" in refused(Shrinks, plan(objects=20, size=0, stored=Amount(100, 100)), seen=replace(seen, runs=(run,)))


def test_more_bytes_than_are_stored_are_too_many():
    refused(TooMuch, plan(objects=1, size=1, stored=Amount(10, 0)))
    refused(TooMuch, plan(objects=1, size=0, stored=Amount(0, 0)))


def test_every_whole_percentage_passes_exactly_at_its_limit():
    for percent in range(1, 101):
        made = plan(objects=percent, size=0, stored=Amount(100, 1))
        passes(made, Limits(max_share=percent / 100))


def test_no_percentage_lets_one_object_more_pass():
    for total in (100, 1000, 10**6, 10**9):
        for percent in range(100):
            made = plan(objects=total // 100 * percent + 1, size=0, stored=Amount(total, 1))
            refused(TooMuch, made, Limits(max_share=percent / 100))


# ---- what there was within thirty days


def sized(days_ago, objects, size=0, **more):
    """A run that found so much, so long ago."""
    return earlier(at=NOW - days_ago * DAY, measure=MEASURE, stored_objects=objects, stored_bytes=size, **more)


def test_small_steps_on_many_days_count_together():
    """100 objects a week ago: down to 70 of them passes, one more is too much, though it is a small share by now."""
    seen = situation(runs=(sized(1, 75), sized(7, 100)))
    passes(plan(objects=5, size=0, stored=Amount(75, 1)), seen=seen)
    text = refused(Shrinks, plan(objects=6, size=0, stored=Amount(75, 1)), seen=seen)
    assert "69 objects would be left of the 100 that there were on 2026-02-22" in text
    assert "--max-share" in text
    passes(plan(objects=6, size=0, stored=Amount(75, 1)), Limits(max_share=0.31), seen)


def test_bytes_that_went_on_many_days_count_together_too():
    seen = situation(runs=(sized(7, 10, 1000),))
    passes(plan(objects=1, size=100, stored=Amount(10, 800)), seen=seen)
    assert "bytes" in refused(Shrinks, plan(objects=1, size=101, stored=Amount(10, 800)), seen=seen)


def test_a_lake_that_turns_over_does_not_shrink():
    passes(
        plan(objects=29, size=0, stored=Amount(100, 1)), seen=situation(runs=tuple(sized(n, 100) for n in range(30)))
    )


def test_what_there_was_earlier_or_of_something_else_is_not_compared():
    made = plan(objects=5, size=0, stored=Amount(50, 1))
    refused(Shrinks, made, seen=situation(runs=(sized(30, 100),)))
    passes(made, seen=situation(runs=(sized(31, 100),)))
    passes(made, seen=situation(runs=(replace(sized(7, 100), measure="committed objects"), earlier())))


def test_other_jobs_that_measure_the_same_count_along():
    seen = situation(runs=(earlier(), replace(sized(7, 100), job="collect", policy="another")))
    refused(Shrinks, plan(objects=5, size=0, stored=Amount(50, 1)), seen=seen)


def test_what_somebody_agreed_to_is_the_size_to_compare_with():
    agreed = sized(3, 100, agreed=1)
    passes(plan(objects=1, size=0, stored=Amount(20, 1)), seen=situation(runs=(sized(1, 20), agreed, sized(9, 100))))
    refused(Shrinks, plan(objects=5, size=0, stored=Amount(20, 1)), seen=situation(runs=(sized(1, 30), agreed)))


def test_it_is_on_record_that_somebody_raised_a_limit_only_if_it_was_needed():
    much, little = plan(objects=40, size=0, stored=Amount(100, 1)), plan(objects=1, size=0, stored=Amount(100, 1))
    assert row(much, Limits(max_share=0.5, confirm=True), situation(), 1).agreed == 1
    assert row(much, Limits(max_share=0.5), situation(), 1).agreed == 0  # a limit that is always so is no answer
    assert row(little, Limits(max_share=0.5, confirm=True), situation(), 1).agreed == 0
    assert row(little, Limits(), situation(), 1).agreed == 0
    steps = situation(runs=(sized(7, 200),))
    assert row(little, Limits(max_share=0.9, confirm=True), steps, 1).agreed == 1


def test_history_has_a_share_of_its_own():
    def expiry(abandoned):
        step = EditHistory({}, (("commit", (), ()),), (), abandoned, reached=100)
        return plan(objects=0, stored=Amount(), steps=(step,), measure="commits")

    passes(expiry(30))
    assert "69 commits would be left of the 100" in refused(Shrinks, expiry(31))
    passes(expiry(100), Limits(max_share=1.0))
    before = earlier(at=NOW - 3 * DAY, measure="commits", stored_objects=120, edits=1)
    refused(Shrinks, expiry(30), seen=situation(runs=(before,)))


def test_to_edit_history_besides_lifts_no_limit_on_objects():
    step = EditHistory({}, (("commit", (), ()),), (), 1, reached=1000)
    passes(plan(objects=3, steps=(step,)))
    assert "4 of 10 objects would go" in refused(TooMuch, plan(objects=4, size=4, steps=(step,)))
    both = plan(objects=4, size=4, steps=(replace(step, abandons=500),))
    found = [type(one) for one in objections(both, Limits(), situation(), resuming=False)]
    assert found == [Shrinks, TooMuch]


# ---- the policy as it is by now


def test_a_policy_that_the_repository_has_outgrown_is_refused():
    text = refused(
        OutgrownPolicy, seen=situation(against=Unfit("branch_days names 'archive', which matches no branch"))
    )
    assert "'archive'" in text
    assert "set it again" in text
    refused(
        OutgrownPolicy, limits=Limits(confirm=True, max_share=1.0), seen=situation(against=Unfit("x")), resuming=True
    )
    refused(OutgrownPolicy, seen=situation(against=Unfit("x", confirm=True)))
    passes(limits=Limits(confirm=True, max_share=1.0), seen=situation(against=Unfit("x", confirm=True)))
    passes(plan(objects=0), seen=situation(against=Unfit("x")))  # what removes nothing does no harm


# ---- a clock that has jumped


@pytest.mark.parametrize("resuming", [False, True])
def test_a_clock_that_has_jumped_is_refused_until_somebody_says_that_it_is_right(resuming):
    jumped = situation(quiet_since=NOW - 365 * DAY)
    text = refused(WrongTime, seen=jumped, resuming=resuming)
    assert "2025-03-01" in text
    assert "--clock-is-right" in text
    passes(limits=Limits(clock_is_right=True), seen=jumped, resuming=resuming)


# ---- the first run


def test_a_policy_that_never_removed_anything_has_to_be_confirmed():
    never = situation(runs=())
    text = refused(FirstRun, seen=never)
    assert plan().run in text
    assert "--confirm" in text
    passes(limits=Limits(confirm=True), seen=never)


@pytest.mark.parametrize("runs", [(earlier(policy="another"),), (earlier(objects=0),)])
def test_runs_of_another_policy_or_of_nothing_confirm_nothing(runs):
    refused(FirstRun, seen=situation(runs=runs))
    passes(seen=situation(runs=(*runs, earlier())))


def days(count):
    return int(count * 86_400_000_000)


def test_a_confirmation_covers_its_period_and_longer_ones():
    seen = situation(runs=(earlier(period=days(30)),))
    passes(plan(period=days(30)), seen=seen)
    passes(plan(period=days(365)), seen=seen)
    passes(plan(period=days(30) - 1_000_000), seen=seen)  # the same words, a second later
    refused(FirstRun, plan(period=days(29)), seen=seen)
    refused(FirstRun, plan(period=days(0.02)), seen=seen)
    passes(plan(period=days(29)), Limits(confirm=True), seen)
    refused(FirstRun, plan(period=days(30)), seen=situation(runs=(earlier(),)))  # nobody knows for how long


def test_small_steps_below_what_is_tolerated_are_not_passed_on():
    """A run that nobody confirmed anew covers what was confirmed, not what it did."""
    minute, day = 60_000_000, 86_400_000_000
    seen = situation(runs=(earlier(period=30 * day),))
    a_little_less = plan(period=30 * day - minute)
    passes(a_little_less, seen=seen)
    assert row(a_little_less, Limits(), seen, 1).period == 30 * day
    assert row(a_little_less, Limits(confirm=True), seen, 1).period == 30 * day - minute
    assert row(plan(period=60 * day), Limits(), seen, 1).period == 60 * day
    after = situation(runs=(row(a_little_less, Limits(), seen, 1), *seen.runs))
    refused(FirstRun, plan(period=30 * day - 2 * minute), seen=after)
    assert row(a_little_less, Limits(), situation(runs=()), 1).period == 30 * day - minute
    again = (
        earlier(at=NOW - timedelta(days=1), period=30 * day),
        earlier(period=day),
    )  # the older one counts no longer
    recovered = situation(runs=again, ask_again_from=NOW - timedelta(days=2))
    assert row(a_little_less, Limits(), recovered, 1).period == 30 * day


def test_a_yes_to_the_trash_is_none_to_deleting():
    trashed, deleted = situation(runs=(earlier(action="trash"),)), situation(runs=(earlier(action="delete"),))
    refused(FirstRun, seen=trashed)
    passes(plan(action=Action.TRASH), seen=trashed)
    passes(plan(action=Action.TRASH), seen=deleted)
    passes(seen=deleted)


def test_a_yes_to_deleting_is_none_to_purging_versions():
    purging = plan(action=Action.PURGE_VERSIONS)
    for less in ("mark", "trash", "delete"):
        refused(FirstRun, purging, seen=situation(runs=(earlier(action=less),)))
    agreed = situation(runs=(earlier(action="purge-versions"),))
    for made in (purging, plan(action=Action.DELETE), plan(action=Action.TRASH)):
        passes(made, seen=agreed)


def test_a_yes_to_one_branch_is_none_to_another_or_to_all():
    dev, main = ONE_BRANCH + "dev", ONE_BRANCH + "main"
    one, all_of_it = situation(runs=(earlier(measure=dev),)), situation(runs=(earlier(measure=MEASURE),))
    refused(FirstRun, seen=one)
    refused(FirstRun, plan(measure=main), seen=one)
    passes(plan(measure=dev), seen=one)
    passes(plan(measure=dev), seen=all_of_it)
    passes(seen=all_of_it)


def test_runs_of_other_jobs_confirm_nothing():
    refused(FirstRun, seen=situation(runs=(earlier(job="lifecycle"),)))


# ---- what a run that was cut off, or has nothing to do, need not pass


@pytest.mark.parametrize(
    ("made", "limits", "seen"),
    [
        (plan(held=0), Limits(), situation()),
        (plan(), Limits(max_objects=0), situation()),
        (plan(objects=10), Limits(), situation()),
        (plan(size=10), Limits(), situation()),
        (plan(), Limits(), situation(runs=())),
    ],
    ids=["nothing held", "too many", "too much", "too much in bytes", "first run"],
)
def test_a_run_that_was_cut_off_passed_the_limits_before(made, limits, seen):
    refused_as = pytest.raises((NothingHeld, TooMany, TooMuch, FirstRun))
    with refused_as:
        guard(made, limits, seen, resuming=False)
    passes(made, limits, seen, resuming=True)


@pytest.mark.parametrize("resuming", [False, True])
def test_an_empty_plan_passes_all_limits(resuming):
    empty = plan(objects=0, held=0, stored=Amount())
    passes(empty, Limits(max_share=0.0, max_objects=0), situation(runs=(), recent=Amount(9, 9)), resuming=resuming)


@pytest.mark.parametrize("resuming", [False, True])
def test_an_empty_plan_still_has_to_be_young_and_of_this_repository(resuming):
    refused(StalePlan, plan(objects=0, made_at=NOW - timedelta(days=2)), resuming=resuming)
    refused(PolicyReplaced, plan(objects=0, policy="another"), resuming=resuming)
    refused(OtherRepository, plan(objects=0, repository="another"), resuming=resuming)
    refused(WentBack, plan(objects=0), seen=situation(lost="commits are missing"), resuming=resuming)
    refused(WrongTime, plan(objects=0), seen=situation(store_now=NOW + 2 * TEN_MINUTES), resuming=resuming)


# ---- the errors themselves


def refusals():
    return [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, Refused)]


def test_each_refusal_has_a_code_of_its_own():
    found = {one: one.code for one in refusals()}
    assert len(found) > 9
    assert len(set(found.values())) == len(found)
    assert {one.exit_code for one in found} == {10}


def test_a_guard_changes_nothing_it_looks_at():
    made, limits, seen = plan(), Limits(), situation()
    before = repr((made, limits, seen))
    passes(made, limits, seen)
    assert repr((made, limits, seen)) == before


def test_all_that_speaks_against_a_plan_is_told_at_once_with_the_words_that_let_it_pass():
    with pytest.raises(FirstRun) as raised:
        passes(plan(objects=5, size=4), Limits(max_objects=3), situation(runs=()))
    refusal = raised.value
    assert [one.code for one in (refusal, *refusal.others)] == ["first-run", "too-many", "too-much"]
    assert refusal.passes == "--confirm --max-share 50% --max-objects 5"
    assert str(refusal) == (
        "this policy of 'gc' was never carried out here before, or not as far; 5 objects would go, the limit is 3; "
        f"5 of 10 objects would go: 50%, the limit is 30%; look at plan {refusal.run}, and if it is right, "
        "pass --confirm --max-share 50% --max-objects 5"
    )


def test_where_one_thing_has_no_yes_no_words_are_offered():
    with pytest.raises(PolicyReplaced) as raised:
        passes(plan(objects=5), None, situation(policy="another", runs=()))
    assert [one.code for one in raised.value.others] == ["first-run", "too-much"]
    assert raised.value.passes is None
    assert str(raised.value).endswith("; plan again")


def test_of_the_same_said_twice_only_what_weighs_more_is_told():
    """By objects and by bytes; and as a share of today and of a month in which nothing else happened."""
    (one,) = objections(plan(objects=5, size=9), Limits(), situation(), resuming=False)
    assert (one.code, one.what, one.let_pass) == ("too-much", "bytes", {"max_share": 0.9, "confirm": True})


AMOUNTS = st.integers(0, 60)


@given(
    objects=AMOUNTS,
    size=AMOUNTS,
    stored=st.builds(Amount, AMOUNTS, AMOUNTS),
    recent=st.builds(Amount, AMOUNTS, AMOUNTS),
    before=st.builds(Amount, AMOUNTS, AMOUNTS),
    held=st.integers(0, 1),
    limits=st.builds(Limits, max_share=st.sampled_from([0.0, 0.3, 0.995, 1.0]), max_objects=st.none() | AMOUNTS),
    lost=st.sampled_from(["", "a generation"]),
    quiet=st.none() | st.just(NOW - 40 * DAY),
    age=st.integers(0, 72).map(lambda hours: timedelta(hours=hours)),
    first=st.booleans(),
)
def test_what_is_said_to_let_a_plan_pass_does(
    objects, size, stored, recent, before, held, limits, lost, quiet, age, first
):
    made = plan(objects=objects, size=size, stored=stored, held=held, made_at=NOW - age)
    run = earlier(at=NOW - 9 * DAY, stored_objects=before.objects, stored_bytes=before.bytes, measure=MEASURE)
    seen = situation(recent=recent, lost=lost, quiet_since=quiet, runs=() if first else (run,))
    enough = passing(made, limits, seen)
    if size > stored.bytes or objects > stored.objects:
        return  # what nobody can have planned
    assert enough is not None
    passes(made, read(enough.words()), seen)


def read(words):
    """Limits as a command reads them."""
    found = []
    command = click.command()(with_limits(lambda limits: found.append(limits)))
    command.main(words.split(), standalone_mode=False)
    return found[0]
