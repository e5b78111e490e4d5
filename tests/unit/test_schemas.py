"""Schemas for editors, and the parsers of the same documents: each accepts what the other does.

Where a schema cannot say what a parser does, or says less on purpose, the rule is in ``APART``, with an example.
"""

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from desilt.domain import keep_rules, policy
from desilt.domain.run import SAID_ONCE
from desilt.errors import BadRequest, DesiltError
from desilt.jobs import registry
from desilt.jobs.documents import read_document
from desilt.jobs.job import ASKED
from desilt.jobs.packages import OURS
from desilt.schemas import KINDS, schema
from desilt.upkeep.document import parse_upkeep

ROOT = Path(__file__).parents[2]
OLD = {"prefix": "tmp/", "days": 30}
TWO_DAYS = {"days": 2}


@cache
def read(kind):
    return json.loads(schema(kind))


def whole_pattern(_validator, wanted, said, _schema):
    """As a schema means it: Python's ``$`` is before a last line's end, too."""
    if isinstance(said, str) and not re.search(wanted.replace("$", r"\Z"), said):
        yield ValidationError(f"{said!r} does not match {wanted!r}")


JOBS = [name for name in read("upkeep")["properties"] if name not in ("description", "trash")]
Validator = extend(Draft202012Validator, {"pattern": whole_pattern})


@cache
def validator(kind):
    return Validator(read(kind))


def schema_accepts(kind, document):
    return validator(kind).is_valid(document)


def parser(kind):
    if kind == "retention":
        parse = pytest.importorskip("desilt.domain.retention").parse
        return lambda document: parse(without_date(document))
    return {"lifecycle": policy.parse, "upkeep": parse_upkeep}[kind]


def without_date(document):
    """What reads a file leaves out what `desilt retention get` has put in."""
    return without(document, "creation_date") if isinstance(document, dict) else document


def parser_accepts(kind, document):
    try:
        parser(kind)(document)
    except DesiltError:  # anything else is no refusal
        return False
    return True


def within(value):
    """``value``, and all that is in it."""
    yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from within(one)


# What is apart


@dataclass(frozen=True)
class Apart:
    """A rule on which the two differ, and what there must be in a document for it to count."""

    rule: str
    kind: str
    schema_accepts: bool  # and the parser does not; else the other way round
    example: object
    counts: Callable[[object], bool]


def some(fits):
    return lambda document: any(fits(one) for one in within(document))


def is_decimal_whole(value):
    return isinstance(value, float) and value.is_integer()


def has_a_day(value):
    return isinstance(value, str) and re.search(r"\d{4}-", value) is not None


def has_odd_digits(value):
    return isinstance(value, str) and re.search(r"[^\D0-9]", value) is not None


def has_half_a_character(value):
    texts = [*value, value] if isinstance(value, dict) else [value]
    return any(isinstance(one, str) and re.search(r"[\ud800-\udfff]", one) for one in texts)


def has_an_id_twice(document):
    if not isinstance(document, dict) or not isinstance(document.get("keep"), list):
        return False
    rules = document.get("rules", [name for name in document if name not in policy.TOP])
    keeps = [{"id": f"keep-{number}", **keep} for number, keep in enumerate(document["keep"], 1)]
    ids = [*rules, *(keep["id"] for keep in keeps)]
    return len(ids) > len(set(ids))


def names_a_file(value):
    return isinstance(value, dict) and any(isinstance(value.get(name), str) for name in ("policy", "document"))


def keeps_less_than_one(value):
    return isinstance(value, dict) and isinstance(number := value.get("keep_last"), int) and number < 1


def is_too_long_in_all(value):
    if not isinstance(value, dict) or not {*value} <= {"weeks", "days"}:
        return False
    return 7 * value.get("weeks", 0) + value.get("days", 0) > 36_500


def has_parts_of_weeks(value):
    return isinstance(value, dict) and isinstance(value.get("weeks"), float)


def rule_for(period):
    return {"rules": [{"status": "enabled", "filter": {}, "expiration": {"all": period}}]}


def in_both(rule, schema_accepts, period, fits):
    """Of a retention document, by itself and in an upkeep."""
    alone = rule_for(period)
    yield Apart(rule, "retention", schema_accepts, alone, some(fits))
    yield Apart(rule, "upkeep", schema_accepts, {"retention": {"document": alone}}, some(fits))


WHOLE, HALF = "whole numbers are not written as 14.0", "a text has no half of a character"
APART = [
    Apart(WHOLE, "lifecycle", True, {"a": {"prefix": "", "days": 14.0}}, some(is_decimal_whole)),
    Apart(WHOLE, "upkeep", True, {"gc": {"max_objects": 5.0}}, some(is_decimal_whole)),
    Apart(HALF, "lifecycle", True, {"a": {"prefix": "\ud800", "days": 1}}, some(has_half_a_character)),
    Apart(HALF, "upkeep", True, {"gc": {}, "description": "\ud800"}, some(has_half_a_character)),
    Apart(HALF, "retention", True, {**rule_for(TWO_DAYS), "description": "\ud800"}, some(has_half_a_character)),
    Apart(
        "an id is there once",
        "lifecycle",
        True,
        {"a": OLD, "keep": [{"prefix": "x", "id": "a"}]},
        has_an_id_twice,
    ),
    Apart(
        "an id is there once, in a policy in an upkeep",
        "upkeep",
        True,
        {"lifecycle": {"policy": {"keep-1": OLD, "keep": [{"prefix": "x"}]}}},
        some(has_an_id_twice),
    ),
    Apart(
        "a file that is named is there, and has what it is to have",
        "upkeep",
        True,
        {"lifecycle": {"policy": "nowhere/policy.yaml"}},
        some(names_a_file),
    ),
    Apart("a day is in a calendar", "upkeep", True, {"expire": {"older_than": "2026-02-30"}}, some(has_a_day)),
    Apart(
        "a moment is written in any way of ISO 8601",
        "upkeep",
        False,
        {"expire": {"older_than": "2026-W05-1T00Z"}},
        some(has_a_day),
    ),
    Apart("digits are those of any script", "upkeep", False, {"gc": {"every": "٣d"}}, some(has_odd_digits)),
    Apart(
        "less than one commit to keep is refused by the run only",
        "upkeep",
        False,
        {"expire": {"older_than": "3d", "keep_last": -1}},
        some(keeps_less_than_one),
    ),
    *in_both("weeks and days are not too long in all", True, {"weeks": 5214, "days": 3}, is_too_long_in_all),
    *in_both("weeks may have parts", False, {"weeks": 1.5}, has_parts_of_weeks),
]


@pytest.mark.parametrize("apart", APART, ids=lambda one: f"{one.kind}: {one.rule}")
def test_what_is_apart_is(apart):
    assert schema_accepts(apart.kind, apart.example) is apart.schema_accepts
    assert parser_accepts(apart.kind, apart.example) is not apart.schema_accepts
    assert apart.counts(apart.example)
    assert not apart.counts({"gc": {"every": "1d"}, "rules": [TWO_DAYS]})


def assert_the_same(kind, document):
    said, meant = schema_accepts(kind, document), parser_accepts(kind, document)
    if said != meant:
        reasons = [one.rule for one in APART if (one.kind, one.schema_accepts) == (kind, said) and one.counts(document)]
        assert reasons, f"the schema {'accepts' if said else 'refuses'} what the parser does not: {document!r}"
    return said


# The schemas themselves


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_one(kind):
    Draft202012Validator.check_schema(read(kind))
    assert read(kind)["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    patterns = [one["pattern"] for one in within(read(kind)) if isinstance(one, dict) and "pattern" in one]
    assert not [one for one in patterns if re.search(r"\\\$|\(\?[!=<]", one)]  # others than Python read them, too


def described(kind):
    """Every place where a field is told, with its path."""

    def walk(node, path):
        if not isinstance(node, dict):
            return
        for name, one in node.get("properties", {}).items():
            yield f"{path}.{name}", one
            yield from walk(one, f"{path}.{name}")
        for word in ("else", "items", "additionalProperties"):
            yield from walk(node.get(word), path)

    yield from walk(read(kind), kind)
    for name, one in read(kind)["$defs"].items():
        if name != "off":  # what a section is compared with
            yield from walk(one, name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_teaches(kind):
    fields = dict(described(kind))
    assert len(fields) > 8
    assert [path for path, one in fields.items() if len(one.get("description", "")) < 10] == []
    assert {"title", "description", "$comment", "examples"} <= read(kind).keys()


def resolved(kind, node):
    name = node.get("$ref", "").removeprefix("#/$defs/")
    return {**resolved(kind, read(kind)["$defs"][name]), **node} if name else node


@pytest.mark.parametrize("kind", KINDS)
def test_examples_and_defaults_are_what_they_are_examples_of(kind):
    places = [(kind, read(kind)), *described(kind), *read(kind)["$defs"].items()]
    found = 0
    for path, one in places:
        checked = Validator({**one, "$defs": read(kind)["$defs"]})
        for value in [*one.get("examples", []), *([one["default"]] if "default" in one else [])]:
            assert checked.is_valid(value), f"{path}: {value!r}"
            found += 1
    assert found > 5
    for document in read(kind)["examples"]:
        assert assert_the_same(kind, document)


@pytest.mark.parametrize(("name", "kind"), [("policy", "lifecycle"), ("retention", "retention")])
def test_what_an_upkeep_has_in_it_is_described_as_by_itself(name, kind):
    """An editor has one file: the other is in there word for word. Change both."""
    own, whole = read("upkeep")["$defs"], read(kind)
    assert own[name] == without(whole, "$schema", "$defs")
    assert {one: own.get(one) for one in whole["$defs"]} == whole["$defs"]


def test_the_fields_of_a_policy_are_those_of_its_parser():
    said, parts = read("lifecycle"), read("lifecycle")["$defs"]
    assert {*said["properties"]} == {*policy.TOP}
    assert [{*one["propertyNames"]["enum"]} for one in (said["then"], said["anyOf"][2]["not"])] == [{*policy.TOP}] * 2
    assert {*parts["rule"]["properties"]} == {*policy.OF_RULE}
    assert {*parts["keepRule"]["properties"]} == {*policy.OF_KEEP}
    assert {*parts["branchRule"]["properties"]} == {*policy.OF_BRANCH}
    assert said["properties"]["tags"]["enum"] == [*policy.Tags]
    assert parts["id"]["pattern"] == f"^{policy.ID.pattern}$"


def test_the_fields_of_a_retention_document_are_those_of_its_parser():
    retention = pytest.importorskip("desilt.domain.retention")
    said, parts = read("retention"), read("retention")["$defs"]
    rule = parts["retentionRule"]["properties"]
    assert {*said["properties"]} == {*retention.TOP, "creation_date"}
    assert {*rule} == {*retention.OF_RULE} == {*parts["retentionRule"]["required"]}
    assert {*rule["filter"]["properties"]} == {*retention.OF_FILTER}
    assert {*rule["expiration"]["properties"]} == {*retention.Kind}
    assert {*parts["period"]["properties"]} == {*retention.OF_PERIOD}


def test_the_sections_of_an_upkeep_are_our_jobs_and_the_trash():
    said = read("upkeep")["properties"]
    assert {*said} == {"description", "trash", *OURS}
    assert [one["required"] for one in read("upkeep")["anyOf"]] == [[name] for name in said if name != "description"]
    counts = read("upkeep")["$defs"]["keepCounts"]
    assert [*counts["properties"]] == [*keep_rules.BUCKETS] == [one["required"][0] for one in counts["anyOf"]]


@pytest.mark.parametrize("job", JOBS)
def test_the_fields_of_a_section_are_the_words_of_its_job(job):
    """Those that a file may say; a new option of a job is to be in the schema, too."""
    words = {word for word in registry.find(job).words if word not in {*ASKED, *SAID_ONCE}}
    limits = {"max_share", "max_objects", "allow_empty", "max_deletes_per_second"}
    way_back = set() if registry.find(job).traits.no_way_back else {"to"}
    said = {*read("upkeep")["properties"][job]["else"]["properties"]}
    assert said == {"enabled", "every"} | words | limits | way_back


# Documents that are there


def blocks(text):
    """What a guide shows of documents: in JSON, behind ``<<END``, behind ``echo``, and in Python."""
    for block in re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield block
    for _, block in re.findall(r"<<'?(END)'?\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL):
        yield block
    yield from re.findall(r"^echo '(\{.*\})' > (?!wrong)", text, re.MULTILINE)  # what is wrong is shown, too
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Dict):
                with suppress(ValueError):  # it is made of other things than words
                    yield json.dumps(ast.literal_eval(node))


def kind_of(document):
    """What a document can only be meant as; None: something else."""
    if not isinstance(document, dict) or not document:
        return None
    if {*document} <= {*read("upkeep")["properties"]}:
        return "upkeep"
    if isinstance(document.get("rules"), list):
        return "retention"
    rules = document.get("rules", document)
    return "lifecycle" if any(isinstance(one, dict) and "prefix" in one for one in rules.values()) else None


def shown():
    """Every document in the guides, the README and the examples, with where it is and what it is."""
    guides = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
    for guide in guides:
        for block in blocks(guide.read_text()):
            try:
                document = read_document(block, kind="document")
            except BadRequest:  # of a shell, or TOML
                continue
            yield guide.name, document
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        if "templates" in path.parts:  # no YAML before it is filled in
            continue
        for document in yaml.safe_load_all(path.read_text()):
            for one in within(document):
                if isinstance(one, dict):
                    yield from ((path.name, read_document(one[name], kind="")) for name in one if name == "upkeep.yaml")
                    yield from ((path.name, one[name]) for name in one if name == "upkeep")


SHOWN = [(where, kind_of(document), document) for where, document in shown() if kind_of(document)]


@pytest.mark.parametrize(("where", "kind", "document"), SHOWN, ids=[f"{where} {kind}" for where, kind, _ in SHOWN])
def test_a_document_that_people_are_shown_is_accepted_by_both(where, kind, document):
    assert parser_accepts(kind, document), where
    assert [error.message for error in validator(kind).iter_errors(document)] == []


def test_all_of_them_were_found():
    """Those there are today; more may come."""
    assert {
        ("lifecycle.md", "lifecycle"),
        ("python.md", "lifecycle"),
        ("upkeep.md", "upkeep"),
        ("operations.md", "upkeep"),
        ("cronjob.yaml", "upkeep"),
        ("values.yaml", "upkeep"),
    } <= {(where, kind) for where, kind, _ in SHOWN}
    assert len([one for one in SHOWN if one[0] == "lifecycle.md"]) >= 2
    assert len([one for one in SHOWN if one[0] == "retention.md"]) >= 2
    assert len([one for one in SHOWN if one[0] == "upkeep.md"]) >= 2


# Documents that are broken


BROKEN = {
    "lifecycle": [
        [],
        {},
        {"rules": {}},
        {"description": "nothing else"},
        {"branches": []},
        {"keep": [{"prefix": "x"}]},
        {"rules": {"a": OLD}, "b": OLD},
        {"rules": [OLD]},
        {"a": 3},
        {"a": {}},
        {"a": {"days": 3}},
        {"a": {"prefix": "x"}},
        {"a": {"prefix": "x", "branch_days": {}}},
        {"a": {"prefix": "x", "branch_days": {"": 3}}},
        {"a": {"prefix": "x", "branch_days": {"dev": "3"}}},
        {"a": {"prefix": None, "days": 3}},
        {"a": {"prefix": "x\0", "days": 3}},
        {"a": {"prefx": "x", "days": 3}},
        {"a": {**OLD, "days": -1}},
        {"a": {**OLD, "days": 36_501}},
        {"a": {**OLD, "days": 1.5}},
        {"a": {**OLD, "days": True}},
        {"a": {**OLD, "days": "30"}},
        {"a": {**OLD, "enabled": "yes"}},
        {"a": {**OLD, "noncurrent_only": 1}},
        {"a b": OLD},
        {"a\n": OLD},
        {"": OLD},
        {"a" * 65: OLD},
        {"$schema": "lifecycle.schema.json", "a": OLD},
        {"a": OLD, "tags": "keep"},
        {"a": OLD, "tags": None},
        {"a": OLD, "noncurrent_only": None},
        {"a": OLD, "description": 3},
        {"a": OLD, "keep": {"prefix": "x"}},
        {"a": OLD, "keep": ["x"]},
        {"a": OLD, "keep": [{}]},
        {"a": OLD, "keep": [{"prefix": "x", "glob": "x"}]},
        {"a": OLD, "keep": [{"prefix": "x", "id": ""}]},
        {"a": OLD, "keep": [{"prefix": "x", "days": 3}]},
        {"branches": [{"match": "x"}]},
        {"branches": [{"match": "", "idle_days": 3}]},
        {"branches": [{"idle_days": 3}]},
        {"branches": [{"match": "x", "idle_days": None}]},
        {"branches": [{"match": "x", "max_age_days": 36_501}]},
    ],
    "upkeep": [
        None,
        [],
        {},
        {"description": "nothing else"},
        {"gc": {"enabled": False}},
        {"gc": {"enabled": False}, "trash": {"enabled": False}},
        {"gc": {"enabled": False, "": 1}, "trash": {}},
        {"gcc": {}},
        {"gc": {}, "description": None},
        {"gc": []},
        {"gc": {"enabled": 0}},
        {"gc": {"max_shrae": "3%"}},
        {"gc": {"max_share": "200%"}},
        {"gc": {"max_share": "100.1%"}},
        {"gc": {"max_share": "many"}},
        {"gc": {"max_share": 48}},
        {"gc": {"max_share": -0.1}},
        {"gc": {"max_share": True}},
        {"gc": {"max_share": None}},
        {"gc": {"max_objects": -5}},
        {"gc": {"max_objects": "5"}},
        {"gc": {"allow_empty": None}},
        {"gc": {"every": 7}},
        {"gc": {"every": None}},
        {"gc": {"every": "soon"}},
        {"gc": {"every": "7d7"}},
        {"gc": {"every": "1234567s"}},
        {"gc": {"every": "36501d"}},
        {"gc": {"every": "036501d"}},
        {"gc": {"every": "100000d"}},
        {"gc": {"every": "876001h"}},
        {"gc": {"every": "5215w"}},
        {"gc": {"every": "999999w"}},
        {"gc": {"dropped_for": None}},
        {"gc": {"dropped_for": 1}},
        {"gc": {"branch": 3}},
        {"gc": {"rules": "mine"}},
        {"gc": {"rules": True}},
        {"gc": {"rules": "server", "tags": "keep"}},
        {"gc": {"confirm": True}},
        {"gc": {"after_restore": True}},
        {"gc": {"now": "2026-01-01"}},
        {"gc": {"full": True}},
        {"gc": {"max_plan_age": "1d"}},
        {"gc": {"to": "heaven"}},
        {"collect": {"to": "trash"}},
        {"collect": {"unreached_for": None}},
        {"expire": None},
        {"expire": {}},
        {"expire": {"older_than": None}},
        {"expire": {"older_than": "30d", "before": "2026-01-31"}},
        {"expire": {"older_than": "soon"}},
        {"expire": {"older_than": "2026-01-31T12:00:00"}},
        {"expire": {"older_than": 30}},
        {"expire": {"before": "30d"}},
        {"expire": {"older_than": "30d", "to": "trash"}},
        {"expire": {"older_than": "30d", "wish": None}},
        {"expire": {"older_than": "30d", "keep": "dayly=7"}},
        {"expire": {"older_than": "30d", "keep": "daily=7, daily=8"}},
        {"expire": {"older_than": "30d", "keep": "daily=0"}},
        {"expire": {"older_than": "30d", "keep": "daily=7,"}},
        {"expire": {"older_than": "30d", "keep": ""}},
        {"expire": {"older_than": "30d", "keep": {}}},
        {"expire": {"older_than": "30d", "keep": {"daily": 0}}},
        {"expire": {"older_than": "30d", "keep": {"daily": -1, "weekly": 1}}},
        {"expire": {"older_than": "30d", "keep": {"dayly": 7}}},
        {"expire": {"older_than": "30d", "keep": {"daily": True}}},
        {"expire": {"older_than": "30d", "keep": ["daily"]}},
        {"expire": {"older_than": "30d", "keep_last": "3"}},
        {"expire": {"older_than": "30d", "sizes": None}},
        {"lifecycle": {"policy": {}}},
        {"lifecycle": {"policy": {"rules": {"a": {"prefx": "x"}}}}},
        {"lifecycle": {"policy": [OLD]}},
        {"lifecycle": {"document": rule_for(TWO_DAYS)}},
        {"retention": {"document": {"rules": []}}},
        {"retention": {"document": rule_for({"days": 0})}},
        {"retention": {"document": [rule_for(TWO_DAYS)]}},
        {"retention": {"policy": rule_for(TWO_DAYS)}},
        {"retention": {"tag": None}},
        {"retention": {"wait": None}},
        {"retention": {"batch": "yes"}},
        {"retention": {"to": "trash"}},
        {"lifecycle": {"policy": ""}},
        {"lifecycle": {"rules": {"a": OLD}}},
        {"trash": {"every": "1d"}},
        {"trash": {"older_than": "0s"}},
        {"trash": {"older_than": "3599s"}},
        {"trash": {"older_than": "000059m"}},
        {"trash": {"older_than": "0w"}},
        {"trash": {"older_than": None}},
    ],
    "retention": [
        [],
        {},
        {"rules": []},
        {"rules": {}},
        {"rules": [3]},
        {"rules": [{}]},
        {**rule_for(TWO_DAYS), "description": 3},
        {**rule_for(TWO_DAYS), "tags": "hold"},
        {"rules": [{"filter": {}, "expiration": {"all": TWO_DAYS}}]},
        {"rules": [{"status": "enabled", "expiration": {"all": TWO_DAYS}}]},
        {"rules": [{"status": "enabled", "filter": {}}]},
        {"rules": [{"status": "Enabled", "filter": {}, "expiration": {"all": TWO_DAYS}}]},
        {"rules": [{"status": True, "filter": {}, "expiration": {"all": TWO_DAYS}}]},
        {"rules": [{"status": "enabled", "filter": None, "expiration": {"all": TWO_DAYS}}]},
        {"rules": [{"status": "enabled", "filter": "main/", "expiration": {"all": TWO_DAYS}}]},
        {"rules": [{"status": "enabled", "filter": {"glob": "x"}, "expiration": {"all": TWO_DAYS}}]},
        {"rules": [{"status": "enabled", "filter": {"prefix": None}, "expiration": {"all": TWO_DAYS}}]},
        {"rules": [{"status": "enabled", "filter": {"prefix": "/main"}, "expiration": {"all": TWO_DAYS}}]},
        {"rules": [{"status": "enabled", "filter": {"prefix": "a\0"}, "expiration": {"all": TWO_DAYS}}]},
        {"rules": [{"status": "enabled", "filter": {}, "expiration": {}}]},
        {"rules": [{"status": "enabled", "filter": {}, "expiration": {"current": TWO_DAYS}}]},
        {"rules": [{"status": "enabled", "filter": {}, "expiration": TWO_DAYS}]},
        rule_for(None),
        rule_for(3),
        rule_for({}),
        rule_for({"months": 1}),
        rule_for({"days": -1}),
        rule_for({"days": "2"}),
        rule_for({"days": True}),
        rule_for({"days": None}),
        rule_for({"days": 0}),
        rule_for({"weeks": 0}),
        rule_for({"weeks": 0, "days": 0.08}),
        rule_for({"weeks": -1, "days": 30}),
        rule_for({"weeks": "1"}),
        rule_for({"weeks": 5215}),
        rule_for({"days": 36_500.5}),
    ],
}


@pytest.mark.parametrize(
    ("kind", "document"),
    [(kind, document) for kind, documents in BROKEN.items() for document in documents],
    ids=lambda one: one if isinstance(one, str) else ascii(one)[:60],
)
def test_what_is_broken_is_refused_by_both(kind, document):
    assert not parser_accepts(kind, document)
    assert not schema_accepts(kind, document)


EDGES = {
    "lifecycle": [
        {"a": {"prefix": "", "days": 0}},
        {"a" * 64: {"prefix": "", "days": 36_500}},
        {"rules": {"keep": OLD, "rules": OLD}},
        {"rules": {}, "branches": [{"match": "x", "idle_days": 0}]},
        {"a": {"prefix": "x\n", "branch_days": {"dev\n*": 3}}, "keep": [{"glob": ""}], "branches": []},
    ],
    "upkeep": [
        {"gc": None},
        {"trash": None},
        {"gc": {"enabled": False, "anything": [1]}, "trash": {}},
        {"expire": {"enabled": False}, "collect": {"enabled": True}},
        {"gc": {"branch": None, "inventory": "", "max_objects": None, "max_share": 1, "every": " 0s\n"}},
        {"gc": {"max_share": "100.00%", "every": "36500d", "dropped_for": "876000h", "max_inventory_age": "05214w"}},
        {"gc": {"max_share": "099.9%", "every": "999999m"}},
        {"expire": {"older_than": None, "before": "2026-01-31 12:00+02:00", "keep": None, "keep_last": None}},
        {"expire": {"older_than": "2026-01-31T12:00:00.5 UTC", "keep": " last = 0 ,yearly=000001 "}},
        {"expire": {"older_than": "3d", "keep": {"daily": 0, "weekly": 1}, "keep_last": 1}},
        {"trash": {"older_than": "1h"}, "collect": {"older_than": None}},
        {"trash": {"older_than": "3600s"}, "lifecycle": {"policy": None}},
        {"trash": {"older_than": "60m"}},
        {"retention": None},
        {"retention": {"document": {**rule_for(TWO_DAYS), "creation_date": 3}, "tag": "", "batch": True, "wait": "0s"}},
    ],
    "retention": [
        {**rule_for(TWO_DAYS), "creation_date": "2020-11-02T00:00:00+00:00"},
        rule_for({"days": 0.0834}),
        rule_for({"days": 2 / 24}),
        rule_for({"weeks": 0, "days": 36_500}),
        rule_for({"weeks": 5214, "days": 2}),
        rule_for({"weeks": 1, "days": 0}),
        {"rules": [{"status": "disabled", "filter": {"prefix": ""}, "expiration": {"uncommitted": {"weeks": 1}}}]},
        {"rules": [{"status": "enabled", "filter": {"prefix": "dev"}, "expiration": {"noncurrent": {"days": 1.5}}}]},
    ],
}


@pytest.mark.parametrize(
    ("kind", "document"),
    [(kind, document) for kind, documents in EDGES.items() for document in documents],
    ids=lambda one: one if isinstance(one, str) else ascii(one)[:60],
)
def test_what_is_just_right_is_accepted_by_both(kind, document):
    assert parser_accepts(kind, document)
    assert schema_accepts(kind, document)


# Documents that nobody has thought of


def merged(one, other):
    """What fits both, as far as a generator must know: a filter sees to the rest."""
    found = {**one, **other}
    if "required" in one and "required" in other:
        found["required"] = [*one["required"], *other["required"]]
    if "properties" in one and "properties" in other:
        names = {**one["properties"], **other["properties"]}
        found["properties"] = {
            name: merged(one["properties"].get(name, {}), other["properties"].get(name, {})) for name in names
        }
    return found


def without(node, *words):
    return {word: one for word, one in node.items() if word not in words}


def lacking(node, names):
    return {**node, "properties": without(node["properties"], *names)}


def shaped(kind, node):
    """Values of the shape that a part of a schema describes; nearly all of them are accepted."""
    if "$ref" in node:
        name = node["$ref"].removeprefix("#/$defs/")
        return shaped(kind, merged(read(kind)["$defs"][name], without(node, "$ref")))
    if "enum" in node or "const" in node:
        return st.sampled_from(node.get("enum") or [node["const"]])
    if "if" in node:
        rest, test = without(node, "if", "then", "else"), resolved(kind, node["if"])
        fails = rest if "properties" in test else lacking(rest, test["required"])
        return st.one_of(
            shaped(kind, merged(fails, node.get("else", {}))), shaped(kind, merged(merged(rest, test), node["then"]))
        )
    if "anyOf" in node:
        rest = without(node, "anyOf")
        return st.one_of([shaped(kind, merged(rest, resolved(kind, one))) for one in node["anyOf"]])
    if "oneOf" in node:
        rest, names = without(node, "oneOf"), [one["required"][0] for one in node["oneOf"]]
        alone = [lacking(rest, [name for name in names if name not in one["required"]]) for one in node["oneOf"]]
        return st.one_of([shaped(kind, merged(*pair)) for pair in zip(alone, node["oneOf"], strict=True)])
    if "minProperties" in node and "properties" in node:
        rest = without(node, "minProperties")
        return st.one_of([shaped(kind, {**rest, "required": [name]}) for name in node["properties"]])
    if "allOf" in node:
        return shaped(kind, merged(node["allOf"][0], without(node, "allOf")))
    types = node.get("type", "object")
    return st.one_of([MADE[one](kind, node) for one in ([types] if isinstance(types, str) else types)])


def texts(_kind, node):
    pattern, least = node.get("pattern", ANY), node.get("minLength", 0)
    if pattern == ANY:
        return st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=least, max_size=4)
    shorter = pattern.replace("{1,64}", "{1,4}").replace("$", r"\Z")
    return st.from_regex(shorter, alphabet=st.characters(max_codepoint=0x2FF))


def integers(_kind, node):
    return st.integers(node.get("minimum", 0), node.get("maximum", 10**9))


def numbers(kind, node):
    return integers(kind, {**node, "minimum": 1}) | st.floats(node["minimum"], node["maximum"])


def arrays(kind, node):
    return st.lists(shaped(kind, node["items"]), min_size=node.get("minItems", 0), max_size=3)


def objects(kind, node):
    known = {name: st.deferred(lambda one=one: shaped(kind, one)) for name, one in node.get("properties", {}).items()}
    needed = {*node.get("required", [])}
    more = node.get("additionalProperties")
    fixed = st.fixed_dictionaries(
        {name: one for name, one in known.items() if name in needed},
        optional={name: one for name, one in known.items() if name not in needed},
    )
    if not isinstance(more, dict) or "rules" in needed:
        return fixed
    names = shaped(kind, node["propertyNames"]).filter(lambda name: name not in known)
    others = st.dictionaries(names, shaped(kind, more), min_size=node.get("minProperties", 0), max_size=3)
    return st.builds(lambda one, other: {**other, **one}, fixed, others)


ANY = r"^[^\x00]*$"
MADE = {
    "string": texts,
    "integer": integers,
    "number": numbers,
    "array": arrays,
    "object": objects,
    "boolean": lambda *_: st.booleans(),
    "null": lambda *_: st.none(),
}
ODD = [
    *(None, True, False, 0, 1, -1, 2, 0.5, 1.5, 14.0, 5214, 5215, 36_500, 36_501, 1e300),
    *("", "x", "/x", "a b", "x\n", "7d", "0s", "59m", "1h", "36501d", " 7d ", "30%", "101%", "hold", "trash"),
    *("daily=7", "daily=0", "2026-01-31", "2026-02-30", "2026-01-31T12:00:00Z", "enabled"),
    *([], {}, [{}], ["x"], {"x": 1}, {"prefix": "x"}, {"daily": 7}, OLD, TWO_DAYS, {"a": OLD}, {"enabled": False}),
]
NAMES = sorted(
    {
        *(name.rsplit(".", 1)[-1] for kind in KINDS for name, _ in described(kind)),
        *(word for job in JOBS for word in registry.find(job).words),
        *("", "x", "a b", "Prefix", "$schema", "confirm", "max_plan_age", "x\0", "rules"),
    }
)


@st.composite
def changed(draw, document):
    """``document`` after one change: a value that is another, a field that goes, comes, or has another name."""
    whole = {"": json.loads(json.dumps(document))}
    places = [(one, key) for one in within(whole) for key in keys(one)]
    holder, key = draw(st.sampled_from(places))
    change = draw(st.sampled_from(["another", "goes", "comes", "renamed", "nudged", "nudged"]))
    if change == "goes" and holder is not whole:
        del holder[key]
    elif change == "renamed" and isinstance(holder, dict) and holder is not whole:
        holder[draw(st.sampled_from(NAMES))] = holder.pop(key)
    elif change == "comes" and isinstance(holder[key], dict):
        holder[key][draw(st.sampled_from(NAMES))] = draw(st.sampled_from(ODD))
    elif change == "comes" and isinstance(holder[key], list):
        holder[key].append(draw(st.sampled_from([*ODD, *holder[key]])))
    elif change == "nudged" and isinstance(holder[key], NUDGED):
        holder[key] = nudged(holder[key], draw(st.sampled_from([-1, 1])))
    else:
        holder[key] = draw(st.sampled_from(ODD))
    return json.loads(json.dumps(whole[""]))


NUDGED = (bool, int, float, str)


def nudged(value, by):
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value[1:] if by < 0 else f"{value}1"
    return value + by


def keys(value):
    return list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []


@pytest.fixture
def _alone(tmp_path, monkeypatch):
    """Where no file is that a document could name."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize("kind", KINDS)
def test_what_has_the_shape_is_accepted_by_both_or_by_none(kind):
    accepted = Counter()

    @settings(max_examples=100)
    @given(shaped(kind, read(kind)))
    def check(document):
        accepted[assert_the_same(kind, document)] += 1

    check()
    assert accepted[True] > 50, accepted


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_accepted_by_both_or_by_none(kind):
    accepted = Counter()

    @settings(max_examples=200)
    @given(shaped(kind, read(kind)).filter(lambda one: schema_accepts(kind, one)).flatmap(changed))
    def check(document):
        accepted[assert_the_same(kind, document)] += 1

    check()
    assert min(accepted[True], accepted[False]) > 10, accepted


# The command


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_prints_a_schema(cli, kind):
    code, out, err = cli("schema", kind)
    assert (code, err) == (0, "")
    assert json.loads(out) == read(kind)
    assert out.endswith("}\n")


@pytest.mark.parametrize("words", [["policy"], []], ids=["unknown", "none"])
def test_whoever_asks_for_another_is_told_which_there_are(cli, words):
    code, out, err = cli("schema", *words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert all(kind in err for kind in KINDS)
    with pytest.raises(BadRequest, match="there are lifecycle, upkeep, retention"):
        schema("policy")


def test_its_help_teaches_how_an_editor_is_told(cli):
    code, out, _ = cli("schema", "--help")
    assert code == 0
    assert "# yaml-language-server: $schema=lifecycle.schema.json\n" in out
    assert all(f"desilt schema {kind} > {kind}.schema.json" in out for kind in KINDS)


def test_it_waits_for_nothing_else():
    code = """
import sys
from desilt.cli.attempt import run
from desilt.cli.main import desilt
assert run(desilt, ["schema", "upkeep"]) == 0
print(*sys.modules, file=sys.stderr)
"""
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert json.loads(ended.stdout) == read("upkeep")
    assert not {"numpy", "pyarrow", "pyspark", "yaml", "jinja2", "obstore", "rich"} & {*ended.stderr.split()}
