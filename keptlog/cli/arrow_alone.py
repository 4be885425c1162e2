"""Arrow without pandas, in a process that is a command's alone.

When Arrow makes its first array it imports pandas, if that is installed, to know a Series when it is given one. That is
half a second of CPU, and commands give it none. So it looks while pandas can't be imported, and does not look again. In
a process of somebody else's that would take ``to_pandas`` away from him; there nobody calls this.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

_WITH_ARROW = {"append", "read", "restore", "verify", "repair"}
"""Commands that make arrays, and start no Spark, whose client needs pandas."""


class _Absent(MetaPathFinder):
    """Finds that there is no pandas."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Null for all else: whoever comes next looks for it."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def spare_pandas(words: list[str]) -> None:
    """Have Arrow look now, if these words call a command that makes arrays."""
    if _WITH_ARROW.isdisjoint(words) or "pandas" in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415

    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(absent)
