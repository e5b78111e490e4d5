"""Frozen types as JSON, and back: by their fields, so that what is written and what is read cannot drift apart."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
KIND = "is"  # which type it is, where there are several
MICROSECOND = timedelta(microseconds=1)


def written(value: Any) -> Any:
    """``value`` as JSON can hold it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {KIND: type(value).__name__, **{one.name: written(getattr(value, one.name)) for one in fields(value)}}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value // MICROSECOND
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(name): written(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [written(one) for one in value]
    return value


def read(kind: type[T], said: Any) -> T:
    """The value of type ``kind`` that :func:`written` wrote; ValueError, KeyError or TypeError if it is none."""
    found: T = _read(kind, said)
    return found


def _read(kind: Any, said: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _read_one_of(inner, said)
    if origin is tuple:
        kinds = [inner[0]] * len(said) if inner[-1] is Ellipsis else inner
        return tuple(_read(one, part) for one, part in zip(kinds, said, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        return {name: _read(inner[1], part) for name, part in said.items()}
    if not isinstance(kind, type):
        return said  # Any
    if is_dataclass(kind):
        if said.get(KIND) != kind.__name__:
            raise ValueError(f"this is no {kind.__name__}")
        hints = get_type_hints(kind)
        if said.keys() - {KIND} != {one.name for one in fields(kind)}:
            raise ValueError(f"this {kind.__name__} is not whole")
        return kind(**{name: _read(hints[name], part) for name, part in said.items() if name != KIND})
    if kind is datetime:
        return datetime.fromisoformat(said)
    if kind is timedelta:
        return said * MICROSECOND
    return kind(said) if issubclass(kind, Enum) else said


def _read_one_of(kinds: tuple[Any, ...], said: Any) -> Any:
    if said is None:
        if NoneType in kinds:
            return None
        raise ValueError("nothing is said")
    some = [one for one in kinds if one is not NoneType]
    if len(some) == 1:
        return _read(some[0], said)
    return _read({one.__name__: one for one in some}[said[KIND]], said)
