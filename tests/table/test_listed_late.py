"""DynamoDB lists a topic for a moment after it was deleted, as it asks an index: such a topic is gone, not hidden."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchTableError

from keptlog.errors import KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.namespaces import NAMESPACE
from tests.table.stores import TOPIC

pytest.importorskip("boto3")

Load = Callable[[type[Exception]], KeptlogError]


@pytest.fixture
def load() -> Load:
    """What is said of a topic that is listed, and for which the table of DynamoDB has this answer."""
    from pyiceberg.catalog.dynamodb import DynamoDbCatalog  # noqa: PLC0415  # only where boto3 is there

    class LateList(DynamoDbCatalog):
        def __init__(self, answer: type[Exception]) -> None:
            self.answer = answer

        def list_tables(self, namespace: object) -> list[tuple[str, ...]]:
            return [(NAMESPACE, TOPIC)] if namespace == (NAMESPACE,) else []

        def load_table(self, identifier: object) -> None:  # type: ignore[override]
            raise self.answer(f"Table does not exist: {identifier}")

    def load(answer: type[Exception]) -> KeptlogError:
        with pytest.raises(KeptlogError) as told:
            load_topic_table(LateList(answer), TOPIC)
        return told.value

    return load


def test_one_whose_item_is_gone_was_deleted(load: Load) -> None:
    assert isinstance(load(NoSuchTableError), UnknownTopic)


def test_one_whose_item_is_there_and_is_not_iceberg_s_is_told(load: Load) -> None:
    told = load(NoSuchIcebergTableError)
    assert isinstance(told, StorageUnavailable)
    assert "or its entry is damaged" in str(told)
