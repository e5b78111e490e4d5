"""Scenario files: what is read, and what is refused with its line before anything is done."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from desilt.errors import BadRequest, Gone
from desilt.testing.scenario import Operation, days, hours, parse, put
from desilt.testing.vocabulary import VOCABULARY


def refusal(*lines):
    with pytest.raises(BadRequest) as caught:
        parse("\n".join(lines), source="story.jsonl")
    return str(caught.value)


def test_a_line_is_an_operation_and_blanks_and_comments_are_none():
    text = '# a comment\n\n  # another\n{"do": "put", "branch": "main", "path": "a", "text": "hello"}\r\n'
    assert parse(text) == [put("main", "a", text="hello")]
    assert parse(text, source="s")[0].where == "s:4"


def test_only_a_newline_ends_a_line():
    odd = "one\u2028two\x85three"
    assert parse(json.dumps({"say": odd}, ensure_ascii=False))[0].say == odd


def test_every_line_may_say_when_what_and_how_it_fails():
    (operation,) = parse(
        '{"do": "delete", "branch": "main", "path": "a", "at": "+3d", "say": "gone it is", "fails": "Gone"}'
    )
    fields = {"branch": "main", "path": "a"}
    assert operation == Operation("delete", fields, at=timedelta(days=3), say="gone it is", fails=Gone)


def test_a_line_without_do_only_lets_time_pass_or_speaks():
    assert parse('{"at": "+30d"}\n{"at": "+2h30m"}') == [days(30), hours(2.5)]
    assert [operation.do for operation in parse('{"say": "a quiet week"}')] == ["wait"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-01-05", datetime(2026, 1, 5, tzinfo=UTC)),
        ("2026-01-05T09:30:00", datetime(2026, 1, 5, 9, 30, tzinfo=UTC)),
        ("2026-01-05T09:30:00Z", datetime(2026, 1, 5, 9, 30, tzinfo=UTC)),
        ("2026-01-05T09:30:00+02:00", datetime(2026, 1, 5, 7, 30, tzinfo=UTC)),
        ("+2w", timedelta(weeks=2)),
        ("+1d12h", timedelta(days=1.5)),
        ("+90s", timedelta(seconds=90)),
    ],
)
def test_times_are_dates_in_utc_or_durations(text, meant):
    assert parse(json.dumps({"at": text}))[0].at == meant


@pytest.mark.parametrize("text", ["yesterday", "+", "3d", "-3d", "+d", "+3x", "+1h1d", "+99999999999999d", "", 7, None])
def test_other_times_are_refused(text):
    assert "story.jsonl:1: at must be a date" in refusal(json.dumps({"at": text}))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("put main a", "not JSON"),
        ("[" * 100_000, "beyond measure"),
        ('["put"]', "one JSON object"),
        ("{}", "needs do"),
        ('{"branch": "main", "say": "hm"}', "needs do"),
        ('{"do": "putt", "branch": "main"}', "no operation 'putt'; there are: wait, branch"),
        ('{"do": ["put"]}', "no operation"),
        ('{"do": "put", "branch": "main"}', "put needs path"),
        ('{"do": "put", "branch": "main", "path": "a", "pth": "b"}', "no field 'pth'; it has branch, path, text"),
        ('{"do": "put", "branch": "main", "path": 7}', "path must be a text"),
        ('{"do": "put", "branch": "main", "path": "\\ud800"}', "path must be a text of valid Unicode"),
        ('{"do": "put", "branch": "main", "path": "a", "path": "b"}', "'path' is said twice"),
        ('{"do": "put", "branch": "main", "path": "a", "bytes": -1}', "bytes must be a whole number"),
        ('{"do": "put", "branch": "main", "path": "a", "bytes": true}', "bytes must be a whole number"),
        ('{"do": "put", "branch": "main", "path": "a", "bytes": 1.5}', "bytes must be a whole number"),
        ('{"do": "put", "branch": "main", "path": "a", "bytes": 9223372036854775808}', "2^63-1"),
        ('{"do": "put", "branch": "main", "path": "a", "bytes": 1, "text": "b"}', "text or bytes, not both"),
        ('{"do": "put", "branch": "main", "path": "a", "seed": 1, "text": "b"}', "text or seed, not both"),
        ('{"do": "put", "branch": "main", "path": "a", "metadata": {"k": 1}}', "an object of texts"),
        ('{"do": "put", "branch": "main", "path": "a", "as": "x"}', "as is not for put"),
        ('{"do": "put", "branch": "main", "path": "a", "say": 1}', "say must be a text"),
        ('{"do": "put", "branch": "main", "path": "a", "fails": "Sorrow"}', "there are: BadRequest, CommitGone"),
        ('{"do": "put", "branch": "main", "path": "a", "fails": "datetime"}', "must be an error"),
        ('{"do": "commit", "branch": "main", "as": "$x"}', "letters, digits"),
        ('{"do": "commit", "branch": "main", "as": "x", "fails": "Gone"}', "a commit that fails has no name"),
        ('{"do": "wait", "fails": "Gone"}', "waiting cannot fail"),
        ('{"do": "reset", "branch": "main"}', "one of all, prefix, path"),
        ('{"do": "reset", "branch": "main", "all": true, "path": "a"}', "one of all, prefix, path"),
        ('{"do": "reset", "branch": "main", "all": false}', "all must be true"),
        ('{"do": "merge", "from": "dev", "branch": "main", "strategy": "best"}', "source-wins or dest-wins"),
        ('{"do": "merge", "from": "$a b", "branch": "main"}', "from must be a ref"),
        ('{"do": "upload", "address": "branches/x"}', "$NAME of an address"),
        ('{"at": "1969-12-31"}', "from 1970-01-01 to 2106-02-07"),
        ('{"at": "2106-02-08"}', "from 1970-01-01 to 2106-02-07"),
        ('{"at": "+900000d"}', "from 1970-01-01 to 2106-02-07"),
        ('{"at": "+9000000d"}', "from 1970-01-01 to 2106-02-07"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(line, says):
    found = refusal("# one", '{"say": "two"}', line)
    assert found.startswith("story.jsonl:3: ")
    assert says in found


def test_time_never_goes_back():
    assert "story.jsonl:2: time does not go back" in refusal('{"at": "2026-03-01"}', '{"at": "2026-02-28"}')
    assert "story.jsonl:3: time" in refusal('{"at": "2026-03-01"}', '{"at": "+2d"}', '{"at": "2026-03-02"}')
    assert len(parse('{"at": "2026-03-01"}\n{"at": "2026-03-01"}')) == 2


def test_a_name_is_given_before_it_is_used_and_only_once():
    tag = '{"do": "tag", "tag": "v1", "from": "$first"}'
    made = '{"do": "commit", "branch": "main", "as": "first"}'
    address = '{"do": "address", "branch": "main", "path": "a", "as": "first"}'
    assert len(parse(f"{made}\n{tag}")) == 2
    assert "story.jsonl:1: from names no commit made before: $first; there are: none" in refusal(tag, made)
    assert "story.jsonl:2: from names no commit" in refusal(address, tag)
    assert "story.jsonl:2: $first has a meaning already" in refusal(made, made)
    assert "there are: $first" in refusal(made, tag.replace("$first", "$frist"))
    assert len(parse(f"{made}\n{tag.replace('$first', '$first~1')}")) == 2


def test_operations_made_in_python_are_checked_alike():
    assert put("main", "a", "hello") == put(branch="main", path="a", text="hello")
    for wrong in (
        lambda: put("main"),
        lambda: put("main", "a", path="b"),
        lambda: put("main", "a", bytes=-1),
        lambda: put("main", "a", bytes_="many"),
        lambda: put("main", "a", fails="Gone"),
        lambda: put("main", "a", at=datetime(2026, 1, 1)),  # noqa: DTZ001
        lambda: put(*"abcdefghij"),
    ):
        with pytest.raises(BadRequest):
            wrong()


def test_keywords_of_python_are_fields_with_an_underscore():
    assert VOCABULARY["branch"]("dev", from_="main").fields == {"branch": "dev", "from": "main"}
    assert VOCABULARY["commit"]("main", as_="x").name == "x"
