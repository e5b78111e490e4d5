"""What is told of versions: as much as is known, and what to do."""

from dataclasses import replace

import pytest

from desilt.runs.report import Amount, BucketVersions, Report, Swept, read_report
from desilt.runs.versions import told

PLAN = Report(
    run="r", job="gc", repository="demo", now="", cutoff="", remove={}, keep={}, prefixes={}, inputs={}
)  # fmt: skip
SWEPT = replace(PLAN, swept=Swept("swept", "delete", 2, 2, 0, 0, 0, 10))
RULE = "a lifecycle rule of the bucket for noncurrent versions ends them."
WAYS = f"plan with --purge-versions to remove them too, or {RULE}"


def of(report, *versions, action="delete"):
    return told(replace(report, action=action, bucket_versions=BucketVersions(*versions)))


@pytest.mark.parametrize("report", [PLAN, SWEPT])
def test_where_there_are_none_nothing_is_said(report):
    assert told(report) == ""
    assert of(report, "Off") == ""
    assert of(report, "Off", action="trash") == ""


def test_where_nothing_was_removed_nothing_is_left():
    assert of(SWEPT, "Enabled", Amount()) == ""


def test_a_plan_says_what_will_be_left():
    stays = "what is removed stays there as an old version, and is paid for"
    assert of(PLAN, "Enabled") == f"The bucket keeps versions: {stays}; {WAYS}"
    assert of(PLAN, "Enabled", action="trash") == f"The bucket keeps versions: {stays}; {RULE}"
    assert of(PLAN, "Suspended").startswith("The bucket kept versions once: what was written then stays there as")
    assert of(PLAN, "unknown").startswith("The bucket does not say whether it keeps versions (s3:GetBucketVersioning)")


def test_a_run_says_how_much_is_left():
    lies = "at least 1 version of 5 B lies there still, of what was removed, to be paid for"
    assert of(SWEPT, "Enabled", Amount(1, 5)) == f"The bucket keeps versions: {lies}; {WAYS}"
    assert "at least 2 versions of 10 B lie there still" in of(SWEPT, "Enabled", Amount(2, 10))
    assert "at least" not in of(SWEPT, "Suspended")


def test_a_purge_says_what_went_and_what_did_not():
    purge = {"action": "purge-versions"}
    assert "whatever it has of what goes would go too, and nothing brings it back" in of(PLAN, "Enabled", **purge)
    assert "nothing has to be purged" in of(PLAN, "Off", **purge)
    went = of(SWEPT, "Enabled", Amount(), Amount(4, 20), 1, **purge)
    assert went == (
        "The bucket keeps versions: 4 versions of 20 B and 1 delete marker went with what was removed, "
        "and nothing brings them back."
    )
    part = of(SWEPT, "Enabled", Amount(1, 5), Amount(3, 15), 0, **purge)
    assert part.endswith("nothing brings them back; 1 version of 5 B could not be removed.")


@pytest.mark.parametrize(
    "versions",
    [
        None,
        BucketVersions("Off"),
        BucketVersions("Enabled", Amount(1, 2)),
        BucketVersions("unknown", Amount(), Amount(3, 4), 5),
    ],
)
def test_a_report_has_them_when_it_is_read_again(versions):
    report = replace(SWEPT, bucket_versions=versions)
    assert read_report(report.to_json()) == report


def test_a_report_from_before_there_were_any_is_read():
    before = SWEPT.to_json().replace('"bucket_versions": null,', "")
    assert before != SWEPT.to_json()
    assert read_report(before) == SWEPT
