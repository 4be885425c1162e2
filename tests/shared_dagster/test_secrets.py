"""After real use no secret is in what Dagster stores, writes or shows, nor in the lake, nor in a command line."""

from __future__ import annotations

import json

import pytest

from tests.security.searching import (
    descendants,
    found_in,
    found_in_command_lines,
    found_in_database,
    found_in_files,
)
from tests.shared_dagster.conftest import SECRETS, SharedDagster, connected


def test_nothing_in_dagsters_storage(cleaned: SharedDagster) -> None:
    with connected(cleaned.database, "dagster") as connection:
        assert found_in_database(connection, SECRETS) == []
        with connection.cursor() as cursor:
            cursor.execute("insert into kvs (key, value) values ('planted', %s)", (SECRETS["Spark's token"],))
            assert found_in_database(connection, SECRETS) == ["Spark's token in kvs.value"]
            cursor.execute("delete from kvs where key = 'planted'")


def test_nothing_in_the_catalog(cleaned: SharedDagster) -> None:
    with connected(cleaned.database, "lake") as connection:
        assert found_in_database(connection, SECRETS) == []


def test_nothing_in_compute_logs_process_logs_or_homes(cleaned: SharedDagster) -> None:
    assert found_in_files(cleaned.folder, SECRETS) == []
    assert any("compute_logs" in str(path) for path in cleaned.folder.rglob("*"))


def test_nothing_in_the_bucket(cleaned: SharedDagster) -> None:
    with cleaned.opened("lake") as home:
        location = home.store.load_table("users").location()
        for file in home.store.files.list(location):
            assert found_in(home.store.files.read_bytes(file.path), SECRETS) == [], file.path


def test_nothing_in_command_lines(cleaned: SharedDagster) -> None:
    pids = descendants(process.pid for process in cleaned.processes.values())

    assert len(pids) > len(cleaned.processes)
    assert found_in_command_lines(pids, SECRETS) == []


@pytest.mark.parametrize("location", ["lake", "disk"])
def test_nothing_on_the_page_of_resources(cleaned: SharedDagster, location: str) -> None:
    text = """query ($where: RepositorySelector!) {allTopLevelResourceDetailsOrError(repositorySelector: $where) {
        ... on ResourceDetailsList {results {name configuredValues {key value type}}}}}"""
    where = {"repositoryLocationName": location, "repositoryName": "__repository__"}
    answer = cleaned.query(text, where=where)

    shown = json.dumps(answer)
    assert "log_store" in shown
    assert found_in(shown, SECRETS) == []
