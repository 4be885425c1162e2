"""An erasure in Dagster as people start it: asked for from the launchpad, seen in the asset, and no key anywhere."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from keptlog.home import open_home
from tests.e2e.conftest import HOUR_MS, PAGE_MS, DagsterDev, Picture
from tests.e2e.launching import launch, refused_launch
from tests.security.searching import contents_below

TOO_WIDE = r"""() => {
    const hiding = [];
    for (const table of document.querySelectorAll("table"))
        for (let around = table; around; around = around.parentElement)
            if (around.scrollWidth > around.clientWidth + 1 && around.clientWidth) hiding.push(around.className);
    return hiding;
}"""
"""What a table of the page is too wide for."""
KEY = "user-7@example.org"


def erase_config(key_hash: str) -> dict[str, Any]:
    config = {"topics": ["leavers"], "key_hashes": [key_hash], "by": "30d", "reason": "request 4711"}
    return {"ops": {"ask_for_erasure": {"config": config}}}


def test_an_erasure_is_asked_for_and_shown_and_a_key_by_mistake_is_refused(
    dagster_dev: DagsterDev, page: Page, picture: Picture
) -> None:
    settings = {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS), "min.cleanable.dirty.ratio": "1"}
    dagster_dev.store.create_topic("leavers", 1, settings)
    dagster_dev.append("leavers", (KEY, "lives in Rotterdam"), ("other", "stays"))

    why = refused_launch(dagster_dev, "erase", erase_config(KEY))
    assert "no run was made of it" in why
    assert KEY not in why
    run_id = launch(dagster_dev, "erase", erase_config(open_home(dagster_dev.home).eraser.hash_of(KEY.encode())))
    dagster_dev.wait_for_run("run that erases", is_it=lambda run: run["runId"] == run_id)

    assert dagster_dev.records("leavers")[-1] == (2, None)
    page.goto(f"{dagster_dev.url}/assets/erasures?view=overview")
    expect(page.get_by_text("tombstoned").first).to_be_visible(timeout=PAGE_MS)
    expect(page.get_by_text("erasures-open-count").first).to_be_visible(timeout=PAGE_MS)
    expect(page.get_by_text("erasure_sensor").first).to_be_visible(timeout=PAGE_MS)
    picture("erasures", 900)
    assert not page.evaluate(TOO_WIDE)
    page.get_by_text("[Show Markdown]").first.click()
    expect(page.get_by_text("blocked by")).to_be_visible(timeout=PAGE_MS)
    assert not page.evaluate(TOO_WIDE)
    page.goto(f"{dagster_dev.url}/assets/erasures?view=checks")
    expect(page.get_by_text("erasure_deadline").first).to_be_visible(timeout=PAGE_MS)
    expect(page.get_by_text("Passed").first).to_be_visible(timeout=PAGE_MS)

    below = contents_below(dagster_dev.log.parent)
    stored = {path: content for path, content in below if dagster_dev.home not in path.parents}
    assert any(b"request 4711" in content for content in stored.values()), "the search finds what is there"
    assert [path for path, content in stored.items() if KEY.encode() in content] == []
