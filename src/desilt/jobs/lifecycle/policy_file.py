"""A policy as people write it down: JSON, or YAML that means what JSON would.

YAML's old guesses are not made: ``no`` is a name, ``010`` is not eight days and
``1:30`` not ninety. Names that are there twice, tags, anchors and aliases are
refused: a reader of the file must see what it says.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any

import yaml

from desilt.domain.document import bad, shown, unique
from desilt.domain.policy import Policy, parse
from desilt.errors import BadRequest, NotFound

PolicyLike = Policy | Mapping[str, Any] | os.PathLike[str] | str
PLAIN: dict[str, tuple[str, Callable[[str], object]]] = {
    "null": (r"null|~|", lambda _: None),
    "bool": (r"true|false", "true".__eq__),
    "int": (r"-?(?:0|[1-9][0-9]{0,17})", int),
    "float": (r"-?(?:0|[1-9][0-9]*)(?=[.eE])(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", float),
}
"""What a word without quotes may be, besides a text; the first that fits."""


def read_policy(text: str, *, name: str = "") -> Policy:
    """The policy in the file ``name``: by its ending, else by how it begins, JSON or YAML."""
    ending = PurePath(name).suffix.lower()
    is_json = ending == ".json" or (ending not in (".yaml", ".yml") and text.lstrip().startswith("{"))
    try:
        document = from_json(text) if is_json else from_yaml(text)
    except RecursionError:
        raise BadRequest(f"{name or 'policy'}: it is nested too deeply; a policy has three levels") from None
    except json.JSONDecodeError as error:
        fix = "mend it, or call the file .yaml if it is YAML"
        raise BadRequest(f"{name or 'policy'}:{error.lineno}: this is not JSON, {error.msg}; {fix}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BadRequest(f"{name or 'policy'}:{line}: this is not YAML, {error.problem}; mend it") from None
    except (yaml.YAMLError, ValueError) as error:
        raise BadRequest(f"{name or 'policy'}: it cannot be read, {' '.join(str(error).split())}; mend it") from None
    return parse(document)


def policy_of(given: PolicyLike) -> Policy:
    """A policy from a mapping, from the text of one (JSON or YAML), or from the file at a path."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, Mapping):
        return parse(dict(given))
    if not isinstance(given, str | os.PathLike):
        raise BadRequest(f"a policy is a mapping, a text, a path or a Policy, not {type(given).__name__}")
    if isinstance(given, str) and ("\n" in given or ": " in given or given.lstrip().startswith("{")):
        return read_policy(given)
    path = Path(given)
    try:
        return read_policy(path.read_text(encoding="utf-8"), name=path.name)
    except FileNotFoundError:
        raise NotFound("policy file", str(given), "give a path, a mapping, or the text itself") from None
    except UnicodeDecodeError:
        raise BadRequest(f"{str(given)!r} is not UTF-8; give a policy as JSON or YAML") from None
    except OSError as error:
        raise BadRequest(f"{str(given)!r} cannot be read: {error.strerror}") from None


def written(policy: Policy) -> str:
    """``policy`` for people, as YAML that :func:`read_policy` reads as the same."""
    return yaml.dump(
        policy.to_json(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False
    )


def from_json(text: str) -> object:
    return json.loads(text, object_pairs_hook=unique)


def from_yaml(text: str) -> object:
    return yaml.load(text, Loader=_Loader)  # a SafeLoader that reads even less


class _Loader(yaml.SafeLoader):
    """Mappings, lists, and the words of :data:`PLAIN`."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise bad("policy", f"line {event.start_mark.line + 1} has an anchor or an alias", "write it out")
        if getattr(event, "tag", None):
            raise bad("policy", f"line {event.start_mark.line + 1} has a tag, {shown(event.tag)}", "take it out")
        return super().compose_node(parent, index)

    def scalar(self, node: yaml.ScalarNode) -> object:
        if node.style is None:
            for pattern, read in PLAIN.values():
                if re.fullmatch(pattern, node.value):
                    return read(node.value)
        return node.value

    def mapping(self, node: yaml.MappingNode) -> dict[str, object]:
        return unique((self._name(name), self.construct_object(value, deep=True)) for name, value in node.value)

    def sequence(self, node: yaml.SequenceNode) -> list[object]:
        return [self.construct_object(one, deep=True) for one in node.value]

    def _name(self, node: yaml.Node) -> str:
        said = self.scalar(node) if isinstance(node, yaml.ScalarNode) else node.value
        if not isinstance(said, str):
            raise bad("policy", f"line {node.start_mark.line + 1}: a name is not a text", "write a name, in quotes")
        return said


_Loader.yaml_implicit_resolvers = {}
_Loader.yaml_constructors = {
    "tag:yaml.org,2002:str": _Loader.scalar,
    "tag:yaml.org,2002:map": _Loader.mapping,
    "tag:yaml.org,2002:seq": _Loader.sequence,
}


class _Dumper(yaml.SafeDumper):
    """Puts every text into quotes that a reader could take for something else: this one, or an older one."""

    def text(self, said: str) -> yaml.ScalarNode:
        odd = not said.isprintable() or any(re.fullmatch(pattern, said) for pattern, _ in PLAIN.values())
        return self.represent_scalar("tag:yaml.org,2002:str", said, style='"' if odd else None)


_Dumper.add_representer(str, _Dumper.text)
