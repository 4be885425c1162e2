"""docs/kafka-compatibility.md names everything there is, and nothing that is not."""

import re
from pathlib import Path

import pytest

from keptlog.log.broker import BROKER_NOT_APPLICABLE, BROKER_SETTINGS
from keptlog.log.config import NOT_APPLICABLE, SETTINGS
from keptlog.log.told.metrics import cleaner_metrics

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "kafka-compatibility.md").read_text(encoding="utf-8")
METRICS = cleaner_metrics([], {}, {}, 0).to_dict()


@pytest.mark.parametrize(
    "name",
    sorted(
        {setting.name for setting in (*SETTINGS, *BROKER_SETTINGS)}
        | NOT_APPLICABLE.keys()
        | BROKER_NOT_APPLICABLE.keys()
        | METRICS.keys()
    ),
)
def test_every_setting_and_metric_is_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_every_decision_that_the_page_names_exists() -> None:
    for number in set(re.findall(r"ADR (\d+)", PAGE)):
        assert list((DOCS / "adr").glob(f"{int(number):04}-*.md")), number


def test_no_two_decisions_have_the_same_number() -> None:
    numbers = [path.name[:4] for path in (DOCS / "adr").glob("*.md")]
    assert len(numbers) == len(set(numbers))
