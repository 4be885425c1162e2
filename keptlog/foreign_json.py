"""JSON that may be anybody's: damaged, or made to do harm.

Python ends with ``RecursionError`` where JSON is nested too deeply, and not with what it says of any other text that is
none. Whoever thought of damage alone would be ended by a file of some kilobytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def json_value(content: str | bytes, number: Callable[[str], Any] | None = None) -> Any:
    """What stands in JSON; ``number`` is asked about each that is not whole, and about NaN and Infinity.

    Raises:
        ValueError: it is none, or is nested more deeply than Python reads.
    """
    try:
        return json.loads(content, parse_float=number, parse_constant=number)  # noqa: TID251  # the one place
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
