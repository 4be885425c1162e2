"""What the commands of each page need before they can be run, and which can't be run here, and why.

A page that is not here needs a home with two topics, in which ``customer-0007`` has records, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.readme.page import PROMPT, ROOT, block_lines

TWO_TOPICS = (
    "keptlog topic create users --config cleanup.policy=compact --config max.compaction.lag.ms=86400000",
    "keptlog topic create orders --config cleanup.policy=compact",
    "keptlog append users --file records.jsonl",
    "keptlog append orders --file records.jsonl",
)
ITS_OWN_TEST = ("docs/tutorial.md", "docs/backup.md")
"""Pages that show what is printed; ``test_pages.py`` runs and compares it."""


@dataclass(frozen=True)
class Shown:
    """One page."""

    begins_with: Sequence[str] = TWO_TOPICS
    codes: Mapping[str, int] = field(default_factory=dict)
    """Exit codes of commands that are shown because they fail."""
    not_run: Mapping[str, str] = field(default_factory=dict)
    """Commands, without what is said about them, that need what a bare machine has not, or that go on for ever."""
    files: Mapping[str, str] = field(default_factory=dict)
    """By name, what the page has made elsewhere."""


_CHANGE = '{"key": {"id": 7}, "value": {"before": null, "after": {"id": 7}, "op": "c", "source": {"ts_ms": 1}}}\n'
_NULL = '{"partition": 0, "offset": 2, "key": "customer-0007", "value": null}\n'
"""What jq makes of a line of ``keptlog read``."""


PAGES = {
    "docs/catalogs.md": Shown(not_run={"keptlog doctor --catalog": "tests/catalogs/test_certified.py runs it"}),
    # A receipt for the auditor.
    "docs/erasure.md": Shown((*TWO_TOPICS, "keptlog topic create old", "keptlog topic delete old")),
    "docs/change-events.md": Shown(files={"changes.jsonl": _CHANGE, "nulls.jsonl": _NULL}),
    "docs/json.md": Shown(codes={"keptlog explain nobody-0 --json": 2}),
    "docs/metrics.md": Shown(
        not_run={"keptlog metrics serve": "it goes on for ever; tests/metrics/test_command.py scrapes it"}
    ),
    "docs/restore.md": Shown(
        not_run={
            "keptlog restore users --to kafka --bootstrap localhost:9092 --topic users-restored": (
                "it needs a broker; tests/broker/test_restore.py has one"
            )
        }
    ),
    "docs/settings.md": Shown(begins_with=()),
    "docs/topics.md": Shown(begins_with=()),
}


def shown(page: str) -> Shown:
    """What the commands of a page need."""
    return PAGES.get(page, Shown())


def pages() -> list[str]:
    """The pages below docs with a command in one of their blocks."""
    found = (str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md")))
    return [page for page in found if page not in ITS_OWN_TEST and command_lines(page)]


def command_lines(page: str) -> list[str]:
    """The lines of its blocks that call keptlog, as they stand there."""
    return [line.removeprefix(PROMPT) for line in block_lines(page) if line.removeprefix(PROMPT).startswith("keptlog ")]
