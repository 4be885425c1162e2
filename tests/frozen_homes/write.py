"""Writes the frozen homes and what is expected of them, with the keptlog that is imported.

    python -m tests.frozen_homes.write tests/frozen_homes/format_1_0 [NAME]...

Each home is written by commands, packed, unpacked at another place and looked at there: as it is, and as a clean, a
retention and a purge at a later time leave it. A home that is there already is never written again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.frozen_homes import telling
from tests.frozen_homes.archive import home_in, pack, unpack
from tests.frozen_homes.command import keptlog
from tests.frozen_homes.homes import HOMES
from tests.frozen_homes.homes_since_1_2 import HOMES_SINCE_1_2
from tests.frozen_homes.homes_since_1_3 import HOMES_SINCE_1_3
from tests.frozen_homes.promises import promised
from tests.frozen_homes.writer import DAY_MS, Writer

_ALL = HOMES | HOMES_SINCE_1_2 | HOMES_SINCE_1_3
_LATER_MS = 40 * DAY_MS
"""By then all segments are closed, and all tombstones but those that were told to wait may go."""


def write_all(folder: Path, names: list[str]) -> None:
    os.environ["KEPTLOG_SPARK_MASTER"] = "local[2]"
    folder.mkdir(exist_ok=True)
    for name in names or _ALL:
        with tempfile.TemporaryDirectory() as temporary:
            _write(folder, name, Path(temporary))
        sys.stdout.write(f"{name}: {(folder / f'{name}.tar.xz').stat().st_size} bytes\n")


def _write(folder: Path, name: str, temporary: Path) -> None:
    inbox = temporary / name
    inbox.mkdir()
    archive = folder / f"{name}.tar.xz"
    writer = Writer(home_in(temporary), inbox)
    _ALL[name](writer)
    pack(writer.home, archive)
    told = _expectation(archive, writer.now_ms, temporary)
    archive.with_name(f"{name}.json").write_text(telling.written(told) + "\n")


def _expectation(archive: Path, now_ms: int, temporary: Path) -> dict[str, Any]:
    later_ms = now_ms + _LATER_MS

    def opened(number: int) -> Path:
        (temporary / str(number)).mkdir()
        return unpack(archive, temporary / str(number))

    as_it_is, cleaned, retained, purged = map(opened, range(4))
    clean = keptlog(cleaned, later_ms, "clean", "--json", *telling.topics(cleaned))
    retain = keptlog(retained, later_ms, "retain", "--json")
    return {
        "now_ms": now_ms,
        "later_ms": later_ms,
        "stored": telling.stored(as_it_is),
        "verified": telling.verdicts(as_it_is, now_ms),
        "status": telling.status(as_it_is, now_ms),
        "promised": promised(as_it_is, now_ms),
        "declared": telling.declared(as_it_is),
        "clean_code": clean.code,
        "cleaned": telling.meaning(cleaned),
        "cleaned_verified": telling.verdicts(cleaned, later_ms),
        "retain_code": retain.code,
        "retained": telling.extent(retained),
        "purge": telling.purged(purged, later_ms),
    }


if __name__ == "__main__":
    write_all(Path(sys.argv[1]), sys.argv[2:])
