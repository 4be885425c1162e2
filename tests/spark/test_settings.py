"""``spark.properties`` in a home: Spark's own form, and nothing of a line is shown that may be a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.settings import spark_settings


def test_it_is_read_as_spark_reads_its_own(tmp_path: Path) -> None:
    lines = ["# where", "spark.master   spark://host:7077", "", "spark.executor.memory=2g", "spark.jars.ivy : /a b=c"]
    (tmp_path / "spark.properties").write_text("\n".join(lines))
    assert spark_settings(tmp_path) == {
        "spark.master": "spark://host:7077",
        "spark.executor.memory": "2g",
        "spark.jars.ivy": "/a b=c",
    }


def test_a_home_without_one_has_no_settings(tmp_path: Path) -> None:
    assert spark_settings(tmp_path) == {}


@pytest.mark.parametrize("line", ["planted", "executor.memory=planted", "spark.secret", "spark.secret="])
def test_a_line_that_is_no_setting_is_named_and_not_shown(tmp_path: Path, line: str) -> None:
    (tmp_path / "spark.properties").write_text(f"spark.a=b\n{line}\n")
    with pytest.raises(InvalidConfig, match=r"line 2 is not spark\.name=value") as refused:
        spark_settings(tmp_path)
    assert "planted" not in str(refused.value)
