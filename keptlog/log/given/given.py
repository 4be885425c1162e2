"""What the callers of a library give, who may give any type, whatever is declared.

Some types look right until they were stored: a position 3.0 became the name of a file that no reader of positions takes
for one. So what is to be stored is made the type that it is stored as, or refused, where it comes in.

Several texts or keys are copied where they come in. An iterator gives what it has once, and a list may be refilled.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import SupportsIndex, TypeVar

from keptlog.errors import InvalidConfig

_Of = TypeVar("_Of", str, bytes)


def whole_number(value: object, what: str) -> int:
    """The same number as an int, which those of NumPy are not.

    Raises:
        InvalidConfig: it is none: text, a float even of a whole value, true or false.
    """
    if type(value) is int:  # of every record: to ask for a protocol takes ten times as long
        return value
    if not isinstance(value, SupportsIndex) or isinstance(value, bool):
        raise InvalidConfig(f"{what} is {value!r}, of type {type(value).__name__}: give a whole number (int)")
    return operator.index(value)


def text(value: object, what: str) -> str:
    """The same text, which can be stored.

    Raises:
        InvalidConfig: it is none, or UTF-8 can't hold it. It is not shown then: it may have a key in it.
    """
    found = any_text(value, what)
    if not is_utf_8(found):
        raise InvalidConfig(f"{what} is text that UTF-8 can't hold (a lone surrogate?): give it in UTF-8")
    return found


def any_text(value: object, what: str) -> str:
    """The same text, which is only looked for among what is stored: nothing there may be called so.

    Raises:
        InvalidConfig: it is none.
    """
    if not isinstance(value, str):
        raise InvalidConfig(f"{what} is {value!r}, of type {type(value).__name__}: give it as text (str)")
    return value


def is_utf_8(value: str) -> bool:
    """Whether UTF-8 can hold a text: not half a character, as Python makes of an argument's byte that is no UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def byte_string(value: object, what: str) -> bytes:
    """The same bytes. They may be a key, so nothing of them is told.

    Raises:
        InvalidConfig: it is none.
    """
    if not isinstance(value, bytes):
        raise InvalidConfig(f"{what} is of type {type(value).__name__}: give it as bytes")
    return value


def texts(values: object, what: str) -> tuple[str, ...]:
    """The same texts, as often as one looks at them.

    Raises:
        InvalidConfig: they are one text, whose letters would be taken for texts, or one of them is none.
    """
    return _several(values, what, str)


def byte_strings(values: object, what: str) -> tuple[bytes, ...]:
    """The same byte strings, as often as one looks at them.

    Raises:
        InvalidConfig: they are one byte string, or one of them is none.
    """
    return _several(values, what, bytes)


def _several(values: object, what: str, of: type[_Of]) -> tuple[_Of, ...]:
    # What is given in a wrong place may be a key: of values the type alone is told.
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, bytearray, memoryview)):
        raise InvalidConfig(
            f"{what}: it is of type {type(values).__name__}; give a list, each entry of type {of.__name__}"
        )
    found = tuple(values)
    for number, each in enumerate(found, 1):
        if not isinstance(each, of):
            raise InvalidConfig(f"{what}: entry {number} is of type {type(each).__name__}; give it as {of.__name__}")
    return found
