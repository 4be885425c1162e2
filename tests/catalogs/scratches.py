"""Where probes of a catalog take place in tests."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog

from keptlog.passes.doctor.catalog_doctor import PROBES
from keptlog.table.doctor.catalog_probe import ProbeResult, probed
from keptlog.table.doctor.scratch import Scratch, scratch_at
from tests.table.stores import new_id

NAMES = [probe.name for probe in PROBES]


def sqlite_catalog(folder: Path, kind: type[SqlCatalog] = SqlCatalog) -> SqlCatalog:
    """A connection to the catalog of a folder."""
    where = {"uri": f"sqlite:///{folder / 'catalog.db'}?timeout=30", "warehouse": f"file://{folder / 'warehouse'}"}
    return kind("keptlog", **where, **{"py-io-impl": "keptlog.table.io.file_io.DurableFileIO"})


def scratch_of(folder: Path, kind: type[SqlCatalog] = SqlCatalog) -> Scratch:
    catalog = sqlite_catalog(folder, kind)
    name = f"keptlog_doctor_1_{new_id()[:8]}"
    return Scratch(catalog, lambda: sqlite_catalog(folder, kind), name, new_id, lambda _: None)


def results_of(scratch: Scratch, *names: str, patience_seconds: float = 120) -> list[ProbeResult]:
    """What probes of these names say."""
    chosen = [probe for probe in PROBES if probe.name in names]
    assert len(chosen) == len(names)
    with scratch_at(scratch):
        return list(probed(chosen, scratch, patience_seconds))


def left_in(folder: Path) -> list[Path]:
    """Files of a warehouse."""
    return [path for path in (folder / "warehouse").rglob("*") if path.is_file()]
