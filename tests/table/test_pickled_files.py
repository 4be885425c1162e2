"""What goes to Spark's tasks says how storage is reached, and nothing of the catalog."""

from __future__ import annotations

import pickle

import pytest

from keptlog.errors import InvalidConfig
from keptlog.table.io.files import TableFiles
from keptlog.table.io.read_only import READ_ONLY

_CATALOG = {
    "uri": "postgresql+psycopg2://me:planted-1@host/db",
    "token": "planted-2",
    "credential": "id:planted-3",
    "header.Authorization": "Bearer planted-4",
    "warehouse": "s3://bucket/warehouse",
}
_STORAGE = {"s3.access-key-id": "someone", "s3.secret-access-key": "needed", "client.region": "here"}


def files_of(properties: dict[str, str]) -> TableFiles:
    return TableFiles(tuple(sorted(properties.items())))


def test_a_catalogs_secrets_stay_with_the_driver() -> None:
    files = files_of(_CATALOG | _STORAGE)
    pickled = pickle.dumps(files)
    assert b"planted" not in pickled
    assert dict(pickle.loads(pickled).properties) == _STORAGE  # noqa: S301  # made above
    assert dict(files.properties) == _CATALOG | _STORAGE


def test_what_may_not_be_written_may_not_be_written_by_a_task_either() -> None:
    files: TableFiles = pickle.loads(pickle.dumps(files_of({READ_ONLY: "it is a copy"})))  # noqa: S301  # made here
    with pytest.raises(InvalidConfig, match="it is a copy"):
        files.delete("/nowhere")


@pytest.mark.parametrize(
    ("properties", "modules"),
    [
        ({}, ()),
        ({"warehouse": "file:///home", READ_ONLY: "it is a copy"}, ()),
        ({"warehouse": "s3://bucket"}, ("pyiceberg",)),
        ({"uri": "https://catalog", "s3.endpoint": "http://store"}, ("pyiceberg",)),
        ({"warehouse": "abfss://container@account"}, ("pyiceberg",)),
    ],
    ids=["nothing said", "a disk", "a bucket", "a store", "another store"],
)
def test_tasks_need_pyiceberg_for_whatever_is_not_on_a_disk(
    properties: dict[str, str], modules: tuple[str, ...]
) -> None:
    assert files_of(properties).task_modules == modules
