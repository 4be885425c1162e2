"""Arrow without pandas, in a process that does keptlog's work alone.

When Arrow makes its first array it imports pandas, if that is installed, to know a Series when it is given one. That is
half a second of CPU, and nobody gives it one here. So it looks while pandas can't be imported, and does not look again.
In a process of somebody else's that would take ``to_pandas`` away from him; there nobody calls this.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _Absent(MetaPathFinder):
    """Finds that there is no pandas."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Null for all else: whoever comes next looks for it."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def spare_pandas(*, with_datasets: bool) -> None:
    """Have Arrow look now; and import its datasets, which look for pandas too, if somebody is to import them later."""
    if "pandas" in sys.modules:
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        import pyarrow as pa  # noqa: PLC0415

        if with_datasets:
            import pyarrow.dataset  # noqa: PLC0415

        pa.array([])
    finally:
        sys.meta_path.remove(absent)
