"""Examples are read, and what they run are commands that there are."""

import ast
import configparser
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from desilt.cli.main import desilt
from desilt.runs import metrics
from desilt.upkeep.document import parse_upkeep

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()


def understood(words):
    """Every option of a command line is one that the command has."""
    group, context = desilt, click.Context(desilt)
    words = [word for word in words if word not in ("-v", "-q")]
    while isinstance(group, click.Group):
        name = words.pop(0)
        group = group.get_command(context, name)
        assert group is not None, name
    known = {option for param in group.params for option in param.opts}
    given = [word for word in words if word.startswith("--")]
    assert given == [word for word in given if word in known]
    return group.name


@pytest.mark.parametrize("service", sorted(EXAMPLES.glob("systemd/*.service")), ids=lambda path: path.stem)
def test_a_service_of_systemd_runs_a_command(service):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(service)
    program, *words = shlex.split(parser["Service"]["ExecStart"])
    assert program.endswith("/desilt")
    assert understood(words) == "run"


def test_the_jobs_of_kubernetes_run_a_command_by_an_upkeep_that_is_one():
    settings, job = yaml.safe_load_all((EXAMPLES / "kubernetes" / "cronjob.yaml").read_text())
    parse_upkeep(yaml.safe_load(settings["data"]["upkeep.yaml"]))
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert understood(container["args"]) == "run"


def test_the_chart_has_an_upkeep_for_each_lake_and_the_same_job():
    chart = EXAMPLES / "helm" / "desilt"
    for lake in yaml.safe_load((chart / "values.yaml").read_text())["lakes"].values():
        parse_upkeep(lake["upkeep"])
    template = (chart / "templates" / "cronjobs.yaml").read_text()
    (args,) = re.findall(r"args: \[(.*)\]", template)
    assert understood([word.strip() for word in args.split(",")]) == "run"


@pytest.mark.parametrize("script", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.name)
def test_a_script_imports_what_is_there(script):
    tree = ast.parse(script.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("desilt"):
            found = __import__(node.module, fromlist=[one.name for one in node.names])
            assert all(hasattr(found, one.name) for one in node.names)


@pytest.mark.parametrize("line", re.findall(r"^spark-submit .*spark_submit\.py (.*)$", OPERATIONS, re.MULTILINE))
def test_what_is_submitted_to_spark_is_a_command(line):
    assert understood(shlex.split(line)) == "run"


def test_what_is_told_of_metrics_is_what_there_is():
    there = set(re.findall(r"\"(desilt_\w+)\"", Path(metrics.__file__).read_text()))
    assert there == set(re.findall(r"desilt_\w+(?<!upkeep)", OPERATIONS.replace("desilt_upkeep.py", "")))
