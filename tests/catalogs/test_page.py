"""docs/catalogs.md says what is asked, and what was seen to fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.passes.doctor.catalog_doctor import PROBES
from keptlog.table.doctor.catalog_probe import Probe
from tests.catalogs.test_wrong_catalogs import DEFECTS

LINES = (Path(__file__).parents[2] / "docs" / "catalogs.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_every_probe_is_on_the_page_with_what_follows(probe: Probe) -> None:
    assert f"| {probe.name} | {probe.promise} | {probe.follows} |" in LINES


@pytest.mark.parametrize("kind", dict.fromkeys(kind for kind, _, _ in DEFECTS), ids=lambda kind: kind.__name__)
def test_every_defect_is_on_the_page_with_the_probes_that_see_it(kind: type[SqlCatalog]) -> None:
    told = (kind.__doc__ or "").removesuffix(".")
    seen_by = ", ".join(name for each, name, _ in DEFECTS if each is kind)
    assert f"| {told[0].lower()}{told[1:]} | {seen_by} |" in LINES
