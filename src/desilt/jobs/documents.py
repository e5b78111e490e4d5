"""Documents that people write: JSON, or YAML that means what JSON would.

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
from desilt.errors import BadRequest, NotFound

PLAIN: dict[str, tuple[str, Callable[[str], object]]] = {
    "null": (r"null|~|", lambda _: None),
    "bool": (r"true|false", "true".__eq__),
    "int": (r"-?(?:0|[1-9][0-9]{0,17})", int),
    "float": (r"-?(?:0|[1-9][0-9]*)(?=[.eE])(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", float),
}
"""What a word without quotes may be, besides a text; the first that fits."""


def read_document(text: str, *, kind: str, name: str = "") -> object:
    """What the file ``name`` says: by its ending, else by how it begins, JSON or YAML. ``kind``: a policy, say."""
    ending = PurePath(name).suffix.lower()
    is_json = ending == ".json" or (ending not in (".yaml", ".yml") and text.lstrip().startswith("{"))
    try:
        return from_json(text) if is_json else from_yaml(text, kind)
    except RecursionError:
        raise BadRequest(f"{name or kind}: it is nested too deeply; one has few levels") from None
    except json.JSONDecodeError as error:
        fix = "mend it, or call the file .yaml if it is YAML"
        raise BadRequest(f"{name or kind}:{error.lineno}: this is not JSON, {error.msg}; {fix}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BadRequest(f"{name or kind}:{line}: this is not YAML, {error.problem}; mend it") from None
    except (yaml.YAMLError, ValueError) as error:
        raise BadRequest(f"{name or kind}: it cannot be read, {' '.join(str(error).split())}; mend it") from None


def given_document(given: Mapping[str, Any] | os.PathLike[str] | str, *, kind: str) -> object:
    """A document as a mapping, as its text, or as the path of a file."""
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, str | os.PathLike):
        raise BadRequest(f"{kind}: it is to be a mapping, a text or a path, not {type(given).__name__}")
    if isinstance(given, str) and ("\n" in given or ": " in given or given.lstrip().startswith("{")):
        return read_document(given, kind=kind)
    path = Path(given)
    try:
        return read_document(path.read_text(encoding="utf-8"), kind=kind, name=path.name)
    except FileNotFoundError:
        raise NotFound(f"{kind} file", str(given), "give a path, a mapping, or the text itself") from None
    except UnicodeDecodeError:
        raise BadRequest(f"{str(given)!r} is not UTF-8; write {kind} as JSON or YAML") from None
    except OSError as error:
        raise BadRequest(f"{str(given)!r} cannot be read: {error.strerror}") from None
    except ValueError:  # a NUL in it
        raise BadRequest(
            f"{str(given)!r} is not the name of a file; give a path, a mapping, or the text itself"
        ) from None


def written(document: object) -> str:
    """For people, as YAML that :func:`read_document` reads as the same."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False)


def from_json(text: str) -> object:
    return json.loads(text, object_pairs_hook=unique)


def from_yaml(text: str, kind: str) -> object:
    return yaml.load(text, Loader=type("_OfKind", (_Loader,), {"kind": kind}))  # a SafeLoader that reads even less


class _Loader(yaml.SafeLoader):
    """Mappings, lists, and the words of :data:`PLAIN`."""

    kind = "document"

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise bad(self.kind, f"line {event.start_mark.line + 1} has an anchor or an alias", "write it out")
        if getattr(event, "tag", None):
            raise bad(self.kind, f"line {event.start_mark.line + 1} has a tag, {shown(event.tag)}", "take it out")
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
            raise bad(self.kind, f"line {node.start_mark.line + 1}: a name is not a text", "write a name, in quotes")
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
