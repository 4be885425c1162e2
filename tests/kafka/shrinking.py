"""How a script that shows a difference is made small, and shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tests.kafka.oracle import Operation, Script

Part = TypeVar("Part")


def shrunk(script: Script, still_differs: Callable[[Script], bool]) -> Script:
    """A smallest part of the script that still differs: no operation, record or setting of it can be left out."""
    while True:
        smaller = _shrunk_once(script[0], script[1:], still_differs)
        if smaller == script:
            return script
        script = smaller


def _shrunk_once(create: Operation, operations: Script, still_differs: Callable[[Script], bool]) -> Script:
    operations = _smallest(operations, lambda rest: still_differs([create, *rest]))
    for index, operation in enumerate(operations):
        if operation["op"] == "append":
            operations[index] = operation | {"records": _fewest_records(create, operations, index, still_differs)}
    settings = _smallest(
        list(create["config"].items()), lambda rest: still_differs([create | {"config": dict(rest)}, *operations])
    )
    return [create | {"config": dict(settings)}, *operations]


def _fewest_records(
    create: Operation, operations: list[Operation], index: int, still_differs: Callable[[Script], bool]
) -> list[Operation]:
    def differs_with(records: list[Operation]) -> bool:
        append = operations[index] | {"records": records}
        return bool(records) and still_differs([create, *operations[:index], append, *operations[index + 1 :]])

    return _smallest(operations[index]["records"], differs_with)


def _smallest(parts: list[Part], still_differs: Callable[[list[Part]], bool]) -> list[Part]:
    """Delta debugging: leave out runs of parts, long ones first, for as long as that is possible."""
    length = len(parts)
    while length:
        start = 0
        while start < len(parts):
            rest = parts[:start] + parts[start + length :]
            if still_differs(rest):
                parts = rest
            else:
                start += length
        length //= 2
    return list(parts)


def pasteable(script: Script) -> str:
    """The script as Python, one operation a line."""
    return "[\n" + "".join(f"    {operation!r},\n" for operation in script) + "]"
