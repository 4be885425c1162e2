"""The pages that answer, in a browser: what cleans a topic, what it waits for, which log is worst.

``KEPTLOG_PAGES_TOPICS=300`` makes so many topics more.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from benchmarks.many_topics import Shape, make_topics, topic_name
from tests.e2e.conftest import HOUR_MS, PAGE_MS, DagsterDev, Picture

TOPICS = int(os.environ.get("KEPTLOG_PAGES_TOPICS", "3"))
COMPACT = {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS), "min.cleanable.dirty.ratio": "1"}
EVENTS = """query ($key: AssetKeyInput!) {assetOrError(assetKey: $key) {... on Asset {
    assetMaterializations(limit: 1) {partition description metadataEntries {label
        ... on MarkdownMetadataEntry {mdStr} ... on TextMetadataEntry {text} ... on IntMetadataEntry {intValue}}}
    assetObservations(limit: 1) {partition metadataEntries {label}}}}}"""
AUTOMATION = """query ($key: AssetKeyInput!) {assetNodeOrError(assetKey: $key) {... on AssetNode {
    targetingInstigators {... on Sensor {name}}}}}"""


def newest(dev: DagsterDev, *path: str) -> dict[str, Any] | None:
    """What the newest materialization of an asset tells."""
    found = dev.query(EVENTS, key={"path": list(path)})["assetOrError"].get("assetMaterializations")
    if not found:
        return None
    entries = found[0]["metadataEntries"]
    return {each["label"]: each.get("mdStr") or each.get("text") or each.get("intValue") for each in entries}


def cleaned_by(dev: DagsterDev, topic: str) -> set[str]:
    """The sensors that clean a topic; none as long as it is no asset."""
    found = dev.query(AUTOMATION, key={"path": [topic, "clean"]})["assetNodeOrError"]
    return {each["name"] for each in found.get("targetingInstigators", ())}


def many_topics(dev: DagsterDev, count: int) -> None:
    """Topics that are not due, each with a deadline of its own: in an hour, and every three hours after that."""
    now_ms = time.time_ns() // 1_000_000
    make_topics(dev.home, count, Shape(partitions=1, segments=2), now_ms)
    for number in range(count):
        dev.store.alter_topic(topic_name(number), {"max.compaction.lag.ms": str((25 + 3 * number) * HOUR_MS)})


@pytest.fixture(scope="module")
def waiting(dagster_dev: DagsterDev) -> DagsterDev:
    """A topic that is appended to, and due in days, and one that is late, whose segment is damaged."""
    many_topics(dagster_dev, TOPICS)
    dagster_dev.store.create_topic("crm.users", 2, COMPACT | {"max.compaction.lag.ms": str(72 * HOUR_MS)})
    dagster_dev.append("crm.users", ("ada", "1"), ("bob", "1"), ("ada", "2"))
    lag = {"max.compaction.lag.ms": str(HOUR_MS)}
    dagster_dev.store.create_topic("crm.orders", 1, COMPACT | lag)
    dagster_dev.append("crm.orders", ("order-1", "open"), ("order-1", "paid"))
    (segment,) = dagster_dev.store.logs("crm.orders")[0].segments
    Path(segment.path.removeprefix("file://")).write_bytes(b"torn")
    dagster_dev.wait_for("assets of the new topics", lambda: cleaned_by(dagster_dev, "crm.users"))
    return dagster_dev


DATES_BROKEN = r"""() => {
    const seen = [], broken = [], times = /\d{4}[-\u2011]\d\d[-\u2011]\d\d|\b\d+[ \u00a0](h|min)\b/g;
    const hiding = [];
    const head = [...document.querySelectorAll("th")].find(each => each.textContent === "deadline (UTC)");
    for (const cell of head.closest("table").querySelectorAll("td")) {
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        if (cell.cellIndex < 5)
            while (texts.nextNode())
                for (const found of texts.currentNode.data.matchAll(times)) {
                    const range = document.createRange();
                    range.setStart(texts.currentNode, found.index);
                    range.setEnd(texts.currentNode, found.index + found[0].length);
                    seen.push(found[0]);
                    if (new Set([...range.getClientRects()].map(line => line.top)).size > 1) broken.push(found[0]);
                }
    }
    for (let around = head.closest("table"); around; around = around.parentElement)
        if (around.scrollWidth > around.clientWidth + 1 && around.clientWidth) hiding.push(around.className);
    return {seen, broken, hiding};
}"""
"""What dates and durations the table of the worst logs shows beside its reasons, and which go on in another line.

And what the table is too wide for.
"""


def test_health_is_told_by_itself_and_answers_which_log_is_nearest_its_deadline(
    waiting: DagsterDev, page: Page, picture: Picture
) -> None:
    def told() -> bool:
        report = newest(waiting, "keptlog", "health") or {}
        return "crm.users-0" in str(report.get("worst_logs")) and "uncleanable since" in str(report.get("worst"))

    waiting.wait_for("report of both topics", told)
    report = newest(waiting, "keptlog", "health") or {}
    assert str(report["nearest_deadline"]).startswith("[crm.orders-0](../crm.orders/clean) ")
    assert report["logs_late"] == report["logs_uncleanable"] == 1
    rows = {line.split("]")[0].strip("| ["): line for line in str(report["worst_logs"]).splitlines()}
    assert "dirty ratio" in rows[f"{topic_name(2)}-0"]
    page.goto(f"{waiting.url}/assets/keptlog/health?view=overview")
    expect(page.get_by_text("largest_late_ms").first).to_be_visible(timeout=PAGE_MS)
    expect(page.get_by_text("health_sensor").first).to_be_visible(timeout=PAGE_MS)
    picture("health", 1000)
    worst = page.get_by_text("[Show Markdown]").first
    worst.click()
    link = page.get_by_role("link", name="crm.users-0").last
    expect(link).to_be_visible(timeout=PAGE_MS)
    broken = page.evaluate(DATES_BROKEN)
    assert broken["seen"]
    assert not broken["broken"]
    assert not broken["hiding"]
    picture("health-worst", 600, 1500, top=page.get_by_text("deadline (UTC)").last)
    link.click()
    expect(page).to_have_url(re.compile(r"/assets/crm\.users/clean"), timeout=PAGE_MS)
    page.goto(f"{waiting.url}/assets/keptlog/health?view=overview")
    page.get_by_role("button", name="Plots").click()
    expect(page.locator("canvas").first).to_be_visible(timeout=PAGE_MS)
    page.get_by_text("largest_late_ms").first.scroll_into_view_if_needed()
    picture("health-plots", 900)


def test_a_clean_section_says_what_cleans_it_and_what_it_waits_for(
    waiting: DagsterDev, page: Page, picture: Picture
) -> None:
    names = {"dirty_ratio_sensor", "max_compaction_lag_sensor", "tombstone_expiry_sensor"}
    assert cleaned_by(waiting, "crm.users") == names

    page.goto(f"{waiting.url}/assets/crm.users/clean?view=overview")
    expect(page.get_by_text("topic_deadline").first).to_be_visible(timeout=PAGE_MS)
    expect(page.get_by_text("3 sensors").first).to_be_visible(timeout=PAGE_MS)
    expect(page.get_by_text("No automations found")).to_have_count(0)
    page.get_by_role("button", name="Columns").click()
    picture("clean-page", 900, 1500)


def test_a_dirty_section_is_materialized_when_it_changes(waiting: DagsterDev, page: Page) -> None:
    page.goto(f"{waiting.url}/assets/crm.users/dirty?view=overview")
    expect(page.get_by_text("is not above min.cleanable.dirty.ratio").first).to_be_visible(timeout=PAGE_MS)
    expect(page.get_by_text("Never materialized")).to_have_count(0)


WIDTHS = """label => [...document.querySelectorAll("table")]
    .filter(table => table.textContent.includes(label))
    .map(table => {
        const words = table.innerText.split(/[\\s-]+/).sort((one, other) => other.length - one.length);
        return [table.offsetWidth, table.parentElement.clientWidth, words[0]];
    })"""
"""How wide the tables with a label are, how wide what they are seen through is, and the longest word in them."""


@pytest.mark.parametrize("width", [1280, 1500])
def test_no_path_and_no_long_name_pushes_a_reason_behind_the_edge_of_its_page(
    waiting: DagsterDev, page: Page, width: int
) -> None:
    long = f"server.{'very_' * 10}long.schema.users"
    if long not in waiting.store.topics():
        waiting.store.create_topic(long, 1, COMPACT | {"max.compaction.lag.ms": str(HOUR_MS)})
        waiting.append(long, ("ada", "1"))
    waiting.wait_for(
        "report of it", lambda: long in str((newest(waiting, "keptlog", "health") or {}).get("worst_logs"))
    )
    page.set_viewport_size({"width": width, "height": 1300})
    for path, label in (("crm.orders/clean", "topic_why"), ("crm.orders/dirty", "why"), ("keptlog/health", "worst")):
        page.goto(f"{waiting.url}/assets/{path}?view=overview")
        expect(page.get_by_text(label, exact=True).first).to_be_visible(timeout=PAGE_MS)
        widths = page.evaluate(WIDTHS, label)
        assert widths, path
        assert all(table <= window for table, window, _ in widths), (path, widths)
