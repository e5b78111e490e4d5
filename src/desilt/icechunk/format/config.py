"""A repository's configuration, as plain values: ``config.yaml`` in format 1, in ``repo`` in format 2.

Nothing that is removed depends on it; it says where virtual chunks may lie.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from desilt.errors import DamagedAsset, NotFound
from desilt.icechunk.layout import CONFIG
from desilt.objects.store import ObjectStore


def fetch(store: ObjectStore) -> Mapping[str, Any]:
    """Of format 1; empty where nobody wrote one."""
    try:
        data = store.get(CONFIG)
    except NotFound:
        return {}
    try:
        found = yaml.load(data, Loader=_Tagged)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise DamagedAsset(CONFIG, "it is not YAML") from None
    if not isinstance(found, dict | None):
        raise DamagedAsset(CONFIG, "it is not a map")
    return found or {}


class _Tagged(yaml.SafeLoader):
    """Plain values; ``!name value`` is a map of one, as format 2 has it."""


def _tagged(loader: _Tagged, tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {tag: loader.construct_mapping(node, deep=True)}
    if isinstance(node, yaml.SequenceNode):
        return {tag: loader.construct_sequence(node, deep=True)}
    return {tag: node.value}


_Tagged.add_multi_constructor("!", _tagged)
