"""A table with rows that another program has made among the topics: every command says that it is none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import LongType

from keptlog.home import open_home
from tests.cli.conftest import Run
from tests.table.foreign import rows_at


@pytest.mark.parametrize("is_like_a_topic", [True, False])
@pytest.mark.parametrize("is_evolved", [True, False])
@pytest.mark.parametrize(
    "command", ["status", "plan", "verify", "explain copy 0", "erase copy --key a --yes", "repair copy", "clean copy"]
)
def test_no_command_takes_a_table_with_rows_of_another_program_for_a_topic_that_was_changed(
    keptlog: Run, home: Path, command: str, *, is_like_a_topic: bool, is_evolved: bool
) -> None:
    keptlog("topic", "create", "users")
    catalog = open_home(home).store._catalog
    rows = rows_at(0, 1) if is_like_a_topic else pa.table({"id": [1]})
    made = catalog.create_table(("keptlog", "copy"), rows.schema)
    made.append(rows)
    if is_evolved:
        made.update_schema().add_column("more", LongType()).commit()

    told = keptlog(*command.split())
    assert told.code != 0
    assert "table 'copy' has no property log.partitions: keptlog did not create it" in told.err
    assert "repair" not in told.err


def test_doctor_sends_nobody_to_a_repair_of_such_a_table(keptlog: Run, home: Path) -> None:
    keptlog("topic", "create", "users")
    rows = pa.table({"id": [1]})
    open_home(home).store._catalog.create_table(("keptlog", "copy"), rows.schema).append(rows)

    told = keptlog("doctor", "--json")
    [found] = [each for check in told.json["checks"] for each in check["problems"] if each["subject"] == "copy"]
    assert "keptlog did not create it; move it elsewhere" in found["what"]
    assert found["command"] is None
