"""Where topics are kept: the embedded catalog, a configured one, and places that can't be used."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.errors import InvalidConfig, LogCorrupt, StorageUnavailable, UnknownTopic
from keptlog.table.catalogs.catalog import files_of, open_catalog
from tests.table.rest_server import rest_server
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, create, store_at, store_over, values


def test_a_home_that_does_not_exist_reads_as_empty_and_stays_away(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    store = store_at(home)
    assert store.topics() == []
    assert store.metadata_locations() == {}
    with pytest.raises(UnknownTopic):
        store.logs(TOPIC)
    assert not home.parent.exists()


def test_a_home_is_made_with_its_first_topic(tmp_path: Path) -> None:
    reader = store_at(tmp_path / "a" / "home")
    assert reader.topics() == []
    create(tmp_path / "a" / "home")
    assert reader.topics() == [TOPIC]


def test_a_home_may_have_any_name(tmp_path: Path) -> None:
    home = tmp_path / "50% of a#b, ünd c?d=e"
    append_each(create(home), [("k", "v")])
    assert values(store_at(home)) == [(0, 0, b"v")]
    assert len(list((home / "warehouse").rglob("*.parquet"))) == 1


def test_a_home_that_is_a_file_is_refused_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(InvalidConfig, match="is a file, and a home is a folder") as caught:
        open_catalog(tmp_path / "home")
    assert "\n" not in str(caught.value)


def test_a_catalog_that_is_no_database_is_unavailable_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("this is not SQLite" * 100)
    with pytest.raises(StorageUnavailable, match="not a database") as caught:
        store_at(tmp_path).topics()
    assert "\n" not in str(caught.value)


def test_metadata_that_was_removed_is_named_and_not_a_crash(tmp_path: Path) -> None:
    store = create(tmp_path)
    for path in (tmp_path / "warehouse").rglob("*.metadata.json"):
        path.unlink()
    with pytest.raises(LogCorrupt, match=rf"{TOPIC}.*metadata\.json is gone: put the file back"):
        store.logs(TOPIC)


def test_a_catalog_that_pyiceberg_is_configured_with_replaces_the_embedded_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")
    store = create(tmp_path / "home")
    append_each(store, [("k", "v")])
    assert values(store_at(tmp_path / "elsewhere")) == [(0, 0, b"v")]
    assert (tmp_path / "lake" / "keptlog" / TOPIC).is_dir()
    assert not (tmp_path / "home").exists()


def test_that_it_stands_for_a_home_changes_none_of_its_settings_nor_what_tasks_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"URI": f"sqlite:///{tmp_path}/db", "WAREHOUSE": f"file://{tmp_path}", "HOME": "theirs"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__KEPTLOG__{name}", value)
    catalog = open_catalog(tmp_path / "home")
    assert catalog.properties["home"] == "theirs"
    assert files_of(catalog).task_modules == ()


@pytest.mark.parametrize("has_type", [True, False])
@pytest.mark.parametrize("is_file", [True, False])
def test_a_rest_catalog_of_the_configuration_that_a_process_begins_with_is_opened(
    tmp_path: Path, has_type: bool, is_file: bool
) -> None:
    """PyIceberg reads its configuration when it is imported, and puts it beside what it is told."""
    create(tmp_path / "home")
    with rest_server(tmp_path / "home") as server:
        settings = {"uri": server.uri} | ({"type": "rest"} if has_type else {})
        environment = {"KEPTLOG_HOME": str(tmp_path / "elsewhere"), "PYICEBERG_HOME": str(tmp_path)}
        if is_file:
            lines = [f"    {name}: {value}\n" for name, value in settings.items()]
            (tmp_path / ".pyiceberg.yaml").write_text(f"catalog:\n  keptlog:\n{''.join(lines)}")
        else:
            environment |= {f"PYICEBERG_CATALOG__KEPTLOG__{name.upper()}": value for name, value in settings.items()}
        told = subprocess.run(
            [sys.executable, "-c", "from keptlog.home import open_home; print(open_home().store.topics())"],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert told.stdout == f"{[TOPIC]}\n", told.stderr


def test_a_topic_gets_no_folder_that_a_topic_of_another_catalog_has_although_that_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the deletion of the one destroys the other."""
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")
    locations: list[str] = []
    for name in ("staging", "production"):
        monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / name}.db")
        store = store_over(open_catalog(tmp_path))
        locations.append(store.create_topic(TOPIC, 1, {}).location)
    assert locations[1].startswith(f"{locations[0]}-")
    store.delete_topic(TOPIC, NOW_MS)
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'staging'}.db")
    assert store_over(open_catalog(tmp_path)).describe_topic(TOPIC).location == locations[0]


def test_the_endpoint_of_the_environment_is_that_of_all_clients_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """boto3 takes it from there, and Arrow does not: records would go to the public bucket of the same name."""
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", "s3://lake/keptlog")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert open_catalog(tmp_path).properties["s3.endpoint"] == "http://127.0.0.1:1"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:2")
    assert open_catalog(tmp_path).properties["s3.endpoint"] == "http://127.0.0.1:2"
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert "s3.endpoint" not in open_catalog(tmp_path).properties
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "false")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__S3__ENDPOINT", "http://127.0.0.1:3")
    assert open_catalog(tmp_path).properties["s3.endpoint"] == "http://127.0.0.1:3"


_PROFILES = """
[default]
endpoint_url = http://127.0.0.1:4
[profile lake]
endpoint_url = http://127.0.0.1:5
services = here
[services here]
s3 =
  endpoint_url = http://127.0.0.1:6
[profile ignoring]
endpoint_url = http://127.0.0.1:7
ignore_configured_endpoint_urls = true
[profile without]
region = eu-central-1
"""


@pytest.mark.parametrize(
    ("profile", "endpoint"),
    [
        (None, "http://127.0.0.1:4"),
        ("lake", "http://127.0.0.1:6"),
        ("ignoring", None),
        ("without", None),
        ("unknown", None),
    ],
)
def test_the_endpoint_of_the_profile_is_that_of_all_clients_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str | None, endpoint: str | None
) -> None:
    (tmp_path / "config").write_text(_PROFILES)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    if profile:
        monkeypatch.setenv("AWS_PROFILE", profile)
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", "s3://lake/keptlog")
    assert open_catalog(tmp_path).properties.get("s3.endpoint") == endpoint
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert open_catalog(tmp_path).properties["s3.endpoint"] == "http://127.0.0.1:1"
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__S3__ENDPOINT", "http://127.0.0.1:3")
    assert open_catalog(tmp_path).properties["s3.endpoint"] == "http://127.0.0.1:3"


def test_a_profile_s_file_that_is_none_stops_no_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_bytes(b"endpoint_url \xff\n[[[")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", "s3://lake/keptlog")
    assert "s3.endpoint" not in open_catalog(tmp_path).properties
    (tmp_path / "config").write_bytes(b"endpoint_url\n[[[")
    assert "s3.endpoint" not in open_catalog(tmp_path).properties


def test_a_configured_catalog_that_makes_no_sense_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "pigeon")
    with pytest.raises(InvalidConfig, match="pigeon"):
        open_catalog(tmp_path)


@pytest.mark.parametrize("warehouse", ["s3://lake/w#4", "s3://lake/w?x=1", "gs://lake/#/w"])
def test_a_warehouse_that_others_take_for_a_shorter_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warehouse: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", warehouse)
    with pytest.raises(InvalidConfig, match=rf"its warehouse {re.escape(warehouse)} has a # or a \? in it\. Readers"):
        open_catalog(tmp_path)


@pytest.mark.parametrize("warehouse", ["s3://lake//w", "s3://lake/a//b", "s3:///w", "abfss://lake//w/"])
def test_a_warehouse_with_a_folder_that_has_no_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warehouse: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", warehouse)
    with pytest.raises(InvalidConfig, match=f"its warehouse {warehouse} has a bucket or a folder without a name"):
        open_catalog(tmp_path)


@pytest.mark.parametrize("warehouse", ["s3://lake/w/", "s3://lake//", "hdfs:///w", "file:///{}/a#b?"])
def test_a_warehouse_that_every_client_finds_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warehouse: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", warehouse.format(tmp_path))
    assert open_catalog(tmp_path).list_namespaces() == []


@pytest.mark.parametrize(
    "of_sqlite", ["sqlite://", "sqlite:///:memory:", "sqlite+pysqlite:///:memory:", "sqlite:///file::memory:?uri=true"]
)
def test_a_database_that_ends_with_its_process_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_sqlite: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", of_sqlite)
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path}")
    with pytest.raises(InvalidConfig, match="in the memory of a process, and each command is one of its own: give"):
        open_catalog(tmp_path)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("TYPE", "in-memory"), ("PY_CATALOG_IMPL", "pyiceberg.catalog.memory.InMemoryCatalog")],
)
def test_a_catalog_in_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: str
) -> None:
    monkeypatch.setenv(f"PYICEBERG_CATALOG__KEPTLOG__{setting}", value)
    with pytest.raises(InvalidConfig, match="in the memory of a process"):
        open_catalog(tmp_path)


@pytest.mark.parametrize(("kind", "told"), [("dynamodb", "DynamoDB"), ("BigQuery", "BigQuery")])
def test_a_kind_of_catalog_that_commits_nothing_is_refused_before_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, told: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", kind)
    with pytest.raises(InvalidConfig, match=f"client for {told} can't commit, so no topic there could take a record"):
        open_catalog(tmp_path)


def test_pyiceberg_can_still_not_commit_to_dynamodb() -> None:
    """Once it can, it is to be asked by the doctor, and no longer refused."""
    from pyiceberg.catalog.dynamodb import DynamoDbCatalog  # noqa: PLC0415  # only where boto3 is there

    with pytest.raises(NotImplementedError):
        DynamoDbCatalog.commit_table(MagicMock(), MagicMock(), (), ())


def test_the_class_of_a_catalog_that_commits_nothing_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__PY_CATALOG_IMPL", "pyiceberg.catalog.dynamodb.DynamoDbCatalog")
    with pytest.raises(InvalidConfig, match="client for DynamoDB can't commit"):
        open_catalog(tmp_path)


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        ("rest", "WAREHOUSE", "arn:aws:s3tables:eu-central-1:123456789012:bucket/lake"),
        ("rest", "WAREHOUSE", "arn:aws-cn:s3tables:cn-north-1:123456789012:bucket/lake"),
        ("rest", "WAREHOUSE", "123456789012:s3tablescatalog/lake"),
        ("glue", "GLUE__ID", "123456789012:s3tablescatalog/lake"),
        ("rest", "S3TABLES__WAREHOUSE", "arn:aws:s3tables:eu-central-1:123456789012:bucket/lake"),
    ],
)
def test_a_catalog_in_which_nobody_can_delete_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, setting: str, value: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", kind)
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", "https://s3tables.eu-central-1.amazonaws.com/iceberg")
    monkeypatch.setenv(f"PYICEBERG_CATALOG__KEPTLOG__{setting}", value)
    with pytest.raises(InvalidConfig, match="S3 Tables let no program list or delete files, so no purge there could"):
        open_catalog(tmp_path)


def test_a_file_io_that_writes_no_checksums_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__PY_IO_IMPL", "pyiceberg.io.pyarrow.PyArrowFileIO")
    with pytest.raises(InvalidConfig, match=r"py-io-impl pyiceberg\.io\.pyarrow\.PyArrowFileIO writes metadata"):
        open_catalog(tmp_path)


def test_a_rest_catalog_without_an_address_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "rest")
    with pytest.raises(InvalidConfig, match="it has no uri, the address of a REST catalog"):
        open_catalog(tmp_path)


def test_a_database_without_a_warehouse_is_refused_before_anything_is_made_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    with pytest.raises(InvalidConfig, match="has no warehouse, below which topics are to lie: set PYICEBERG_CATALOG__"):
        open_catalog(tmp_path)


def test_a_namespace_with_a_place_of_its_own_needs_no_warehouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = (tmp_path / "lake").as_uri()
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'shared.db'}"}
    load_catalog("keptlog", **settings).create_namespace("keptlog", {"location": place})
    for name, text in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__KEPTLOG__{name.upper()}", text)
    store = store_over(open_catalog(tmp_path))
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1")])
    assert store.describe_topic(TOPIC).location.startswith(place)
    assert values(store) == [(0, 0, b"1")]


def test_two_stores_over_one_home_see_each_others_topics(tmp_path: Path) -> None:
    first, second = store_at(tmp_path), store_at(tmp_path)
    first.create_topic("a", 1, COMPACTED)
    second.create_topic("b", 1, COMPACTED)
    assert first.topics() == second.topics() == ["a", "b"]


@pytest.mark.parametrize(("said", "is_tried"), [(None, True), ("false", False), ("true", True)])
def test_a_connection_to_a_database_is_tried_before_it_is_used_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, *, is_tried: bool
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")
    if said:
        monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__POOL_PRE_PING", said)
    catalog = open_catalog(tmp_path)
    assert isinstance(catalog, SqlCatalog)
    assert catalog.engine.pool._pre_ping is is_tried  # SQLAlchemy does not say it otherwise


def test_a_postgres_that_hangs_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keptlog.table.catalogs.catalog.CONNECT_SECONDS", 2)
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql+psycopg2://user:planted-secret@127.0.0.1:{silent.getsockname()[1]}/lake"
        monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", address)
        with pytest.raises(StorageUnavailable, match="timeout expired") as told:
            open_catalog(tmp_path)
    assert "planted-secret" not in str(told.value)


def test_a_rest_catalog_that_hangs_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(tmp_path)
    with rest_server(tmp_path) as server:
        monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", server.uri)
        store = store_at(tmp_path / "elsewhere")
        assert store.topics() == [TOPIC]
        monkeypatch.setattr("keptlog.table.catalogs.rest.ANSWER_SECONDS", 0.1)
        server.delay_seconds = 1
        with pytest.raises(StorageUnavailable, match="ReadTimeout"):
            store.topics()
