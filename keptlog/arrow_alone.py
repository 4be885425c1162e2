"""Arrow without pandas, in a process that does keptlog's work alone.

When Arrow makes its first array it imports pandas, if that is installed, to know a Series when it is given one. That is
half a second of CPU, and nobody gives it one here. So it looks while pandas can't be imported, and does not look again.

    a command            pandas can't be imported in its process; Arrow is imported when it is needed, if at all
    a worker of Spark    Arrow is imported ahead, and looks; then pandas can be imported again

In a process of somebody else's that would take ``to_pandas`` away from him; there nobody calls this.
"""

from __future__ import annotations

import sys


class _Absent:
    """A finder of modules, on Python's ``meta_path``, that finds that there is no pandas."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Null for all else: whoever comes next looks for it."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def never_pandas() -> None:
    """No pandas in this process from now on."""
    sys.meta_path.insert(0, _Absent())


def spare_pandas() -> None:
    """Have Arrow look now, and its datasets, which do so too when they are imported."""
    if "pandas" in sys.modules:
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.dataset  # noqa: PLC0415

        pa.array([])
    finally:
        sys.meta_path.remove(absent)
