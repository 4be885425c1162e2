"""Values that are stored as JSON, to and from dataclasses: in table properties, snapshot summaries and journals.

Whoever reads one may be older than whoever wrote it, so the rule stands here once, for all of them (docs/format.md):

    {"reason": "no space", "since_ms": 7}                     as it was written
    {"reason": "no space", "since_ms": 7, "colour": "blue"}   of a newer minor version: what is not known is read over
    {"reason": "no space"}                                    a field is missing: refused, unless it has a default
    {"reason": "no space", "since_ms": "7"}                   a field is of another type: refused

What would be refused is not written either: a time of 7.0 made a topic unreadable for good, because somebody had given
a float as the time.

Fields may be whole numbers, text, true or false, null where the type says so, dataclasses, and tuples of one of these.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import MISSING
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from keptlog.errors import InvariantViolated, LogCorrupt
from keptlog.foreign_json import json_value

_T = TypeVar("_T")
_Read = Callable[[Any], Any]
_PLAIN = {int: "a whole number", str: "text", bool: "true or false"}
_LONGEST_SHOWN = 1500
_LONGEST_SHOWN_OF_FIELD = 40


def to_json(value: Any) -> str:
    """A dataclass as it is stored.

    Raises:
        InvariantViolated: a field is not of its type, and could not be read again.
    """
    kind: Any = type(value)
    try:
        text = json.dumps(dataclasses.asdict(value), separators=(",", ":"))
        _reader(kind)(json_value(text))
    except (TypeError, ValueError) as error:
        raise InvariantViolated(
            f"{kind.__name__} can't be stored, for it could not be read again ({error}); please report this"
        ) from error
    return text


def from_json(kind: type[_T], text: str, where: str, what: str, remedy: str) -> _T:
    """Read what was stored as a dataclass, or as a tuple of some.

    The last three are for the error's message: which value it is, what it should be, and what to do otherwise.

    Raises:
        LogCorrupt: it is no JSON, or a field is missing or of another type.
    """
    of_any_kind: Any = kind
    try:
        read: _T = _reader(of_any_kind)(json_value(text))
    except ValueError as error:
        raise LogCorrupt(f"{where}={text[:_LONGEST_SHOWN]!r} is no {what} ({_why(error)}); {remedy}") from None
    return read


def from_property(kind: type[_T], text: str, where: str, what: str, remedy: str) -> _T:
    """As ``from_json``, of a property of the table: where it is wrong, no file is damaged.

    Raises:
        LogCorrupt: as ``from_json``.
    """
    try:
        return from_json(kind, text, where, what, remedy)
    except LogCorrupt as error:
        raise error.of_property() from None


def from_json_file(kind: type[_T], content: bytes, path: str, what: str, remedy: str) -> _T:
    """As ``from_json``, of a file; its content is not shown, for it may be long, and anything.

    Raises:
        LogCorrupt: it is no JSON, or a field is missing or of another type.
    """
    of_any_kind: Any = kind
    try:
        read: _T = _reader(of_any_kind)(json_value(content.decode()))
    except ValueError as error:
        raise LogCorrupt(f"{path} is no {what} ({_why(error)}); {remedy}") from None
    return read


def is_stored(kind: Any, value: object, *, is_all_known: bool = False) -> bool:
    """Whether a value of JSON can be read as one of these, and, if asked, whether it has nothing that is read over."""
    try:
        _reader(kind)(value)
    except ValueError:
        return False
    known = {each.name for each in dataclasses.fields(kind)}
    return not is_all_known or (isinstance(value, dict) and value.keys() <= known)


def require_bare(name: str) -> None:
    """Refuse a stored name of a file or folder that leads out of the folder where it is looked for.

    Raises:
        ValueError: it has a slash, or is no name.
    """
    if not name.strip(".") or not {"/", "\\", "\0"}.isdisjoint(name):
        raise ValueError(f"{name[:_LONGEST_SHOWN_OF_FIELD]!r} is no name of a file or folder")


def _why(error: ValueError) -> str:
    return "it is not JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else str(error)


@cache
def _reader(kind: Any) -> _Read:
    """What turns JSON's value into one of this type; raises ValueError. Made once for each type: it takes a while."""
    if dataclasses.is_dataclass(kind):
        return _reader_of_object(kind)
    if get_origin(kind) is tuple:
        return _reader_of_list(_reader(get_args(kind)[0]))
    if get_origin(kind) is UnionType:
        (inner,) = (each for each in get_args(kind) if each is not NoneType)
        return _reader_or_null(_reader(inner))
    if kind in _PLAIN:
        return _reader_of_plain(kind)
    raise TypeError(f"{kind} can't be stored as JSON")


def _reader_of_object(kind: Any) -> _Read:
    types = get_type_hints(kind)
    fields = [(each.name, each.default is MISSING, _reader(types[each.name])) for each in dataclasses.fields(kind)]

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _other(value, "an object")
        known: dict[str, Any] = {}
        for name, is_required, read_field in fields:
            if name in value:
                known[name] = _named(name, read_field, value[name])
            elif is_required:
                raise ValueError(f"it has no {name}")
        return kind(**known)

    return read


def _reader_of_list(read_each: _Read) -> _Read:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _other(value, "a list")
        return tuple(map(read_each, value))

    return read


def _reader_or_null(read_other: _Read) -> _Read:
    return lambda value: None if value is None else read_other(value)


def _reader_of_plain(kind: type) -> _Read:
    def read(value: Any) -> Any:
        if type(value) is not kind:  # true is no number here
            raise _other(value, _PLAIN[kind])
        return value

    return read


def _named(name: str, read: _Read, value: Any) -> Any:
    """Read a field; an error says which one."""
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _other(value: Any, wanted: str) -> ValueError:
    return ValueError(f"it is {repr(value)[:_LONGEST_SHOWN_OF_FIELD]}, not {wanted}")
