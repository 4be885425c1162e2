"""What keptlog says of catalogs that were tried: everything is kept, and nothing is left behind."""

from __future__ import annotations

import time
from pathlib import Path

from examples.lake.postgres import Postgres
from keptlog.passes.doctor.catalog_doctor import CatalogDoctor, Certificate
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.doctor.catalog_probe import Answer
from keptlog.table.doctor.scratch import Scratch, left_over
from tests.catalogs.conftest import Configure, Open
from tests.catalogs.glue import glue_server
from tests.catalogs.scratches import results_of
from tests.lake.installed import or_skip
from tests.table.buckets import ABucket
from tests.table.stores import create, new_id


def examined(open_one: Open) -> Certificate:
    return CatalogDoctor(open_one, new_id, time.sleep).examine(time.time_ns() // 1_000_000)


def require_certified(open_one: Open) -> Certificate:
    found = examined(open_one)
    assert {each.probe.name: each.seen for each in found.results if each.answer is not Answer.KEPT} == {}
    assert found.verdict == "this catalog does what keptlog's guarantees rest on"
    assert left_over(open_one()) == {}
    assert found.left == ()
    return found


def below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_the_embedded_catalog(tmp_path: Path) -> None:
    create(tmp_path)
    before = below(tmp_path)
    assert require_certified(lambda: open_catalog(tmp_path)).hints == ()
    assert below(tmp_path) == before


def test_sqlite_by_pyiceberg_s_configuration(tmp_path: Path, configure: Configure) -> None:
    open_one = configure(type="sql", uri=f"sqlite:///{tmp_path / 'shared.db'}", warehouse=f"file://{tmp_path / 'lake'}")
    require_certified(open_one)
    assert [path for path in below(tmp_path / "lake") if path.is_file()] == []


def test_postgres(tmp_path: Path, configure: Configure, database: Postgres) -> None:
    open_one = configure(type="sql", uri=database.create(f"db{new_id()}"), warehouse=f"file://{tmp_path / 'lake'}")
    require_certified(open_one)
    assert [path for path in below(tmp_path / "lake") if path.is_file()] == []


def test_postgres_and_a_bucket(configure: Configure, database: Postgres, bucket: ABucket) -> None:
    keys = {name.replace(".", "__").replace("-", "_"): text for name, text in dict(bucket.properties).items()}
    uri = database.create(f"db{new_id()}")
    found = require_certified(configure(type="sql", uri=uri, warehouse=f"s3://{bucket.name}/lake", **keys))
    [hint] = found.hints
    assert hint.startswith(f"bucket {bucket.name} has no lifecycle rule that aborts incomplete multipart uploads")
    assert bucket.versions() == []


def test_glue_but_for_its_names(configure: Configure) -> None:
    with or_skip(glue_server()) as server:
        found = examined(configure(**server.catalog()))
        seen = {each.probe.name: each.seen for each in found.results if each.answer is not Answer.KEPT}
        assert seen == {
            "names": "Orders_EU is not listed under that name; what is: orders_eu, orders_us, shop.users-v2"
        }
        assert found.verdict == "this catalog does not do all that keptlog needs: names"
        assert (found.left, left_over(open_catalog(Path()))) == ((), {})


def test_a_glue_that_compares_no_versions_is_seen(configure: Configure) -> None:
    with or_skip(glue_server("plain")) as server:
        open_one = configure(**server.catalog())
        scratch = Scratch(open_one(), open_one, f"keptlog_doctor_1_{new_id()[:8]}", new_id, lambda _: None)
        [result] = results_of(scratch, "compare and swap")
    assert result.answer is Answer.BROKEN
    assert "writers on one snapshot were told that they had landed" in result.seen


def test_rest(configure: Configure, rest: tuple[str, Path]) -> None:
    uri, warehouse = rest
    before = below(warehouse)
    require_certified(configure(type="rest", uri=uri))
    assert {path for path in below(warehouse) - before if path.is_file()} == set()
