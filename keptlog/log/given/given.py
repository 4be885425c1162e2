"""What the callers of a library give, who may give any type, whatever is declared.

Some types look right until they were stored: a position 3.0 became the name of a file that no reader of positions takes
for one. So what is to be stored is made the type that it is stored as, or refused, where it comes in.
"""

from __future__ import annotations

import operator
from typing import SupportsIndex

from keptlog.errors import InvalidConfig


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
    """The same text.

    Raises:
        InvalidConfig: it is none.
    """
    if not isinstance(value, str):
        raise InvalidConfig(f"{what} is {value!r}, of type {type(value).__name__}: give it as text (str)")
    return value
