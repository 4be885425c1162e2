"""Dagster as people start it: sensors clean by themselves, people clean by hand, and both see what happened."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.conftest import PAGE_MS, DagsterDev, Picture
from tests.e2e.launching import launch


def asset_keys(dev: DagsterDev) -> set[str]:
    nodes = dev.query("{assetNodes {assetKey {path}}}")["assetNodes"]
    return {"/".join(node["assetKey"]["path"]) for node in nodes}


def test_a_sensor_launches_a_run_by_itself_and_the_log_is_cleaned(dagster_dev: DagsterDev) -> None:
    run = dagster_dev.wait_for_run(
        "run of the dirty ratio sensor",
        is_it=lambda run: run["tags"].get("keptlog/topic_partitions") == "server.schema.users-0",
    )

    assert run["tags"]["dagster/sensor_name"] == "dirty_ratio_sensor"
    assert dagster_dev.records("server.schema.users") == [(1, b"1"), (2, b"2")]


def newest_numbers(dev: DagsterDev, topic: str, section: str, run_id: str | None = None) -> dict[str, Any]:
    """What the newest materialization of partition 0 tells, or that of a run: its numbers, and what was done."""
    text = """query ($key: AssetKeyInput!) {assetNodeOrError(assetKey: $key) {... on AssetNode {
        assetMaterializations {runId partition description
            metadataEntries {label ... on IntMetadataEntry {intValue}}}}}}"""
    node = dev.query(text, key={"path": [topic, section]})["assetNodeOrError"]
    found = [
        {entry["label"]: entry.get("intValue") for entry in each["metadataEntries"]} | {"done": each["description"]}
        for each in node["assetMaterializations"]
        if each["partition"] == f"{topic}-0" and run_id in {None, each["runId"]}
    ]
    return found[0]


def test_what_the_run_did_is_in_the_asset_catalog(dagster_dev: DagsterDev) -> None:
    numbers = newest_numbers(dagster_dev, "server.schema.users", "clean")

    assert (numbers["records_in"], numbers["records_out"]) == (3, 2)
    assert "because of dirty_ratio: 3 records in, 2 out" in numbers["done"]


def test_what_is_behind_its_broker_is_ingested_and_then_cleaned_by_the_sensors(dagster_dev: DagsterDev) -> None:
    ingested = dagster_dev.wait_for_run(
        "run of the lag sensor", is_it=lambda run: run["tags"].get("keptlog/trigger") == "consumer_lag"
    )
    assert ingested["jobName"] == "ingest_kafka"
    # A sensor materializes dirty sections too, at each of its ticks that finds them changed.
    numbers = newest_numbers(dagster_dev, "profiles", "dirty", ingested["runId"])
    assert (numbers["records_ingested"], numbers["log_end_offset"], numbers["consumer_lag"]) == (3, 3, 0)

    dagster_dev.wait_for_run(
        "run that cleans what was ingested",
        is_it=lambda run: run["tags"].get("keptlog/topic_partitions") == "profiles-0",
    )

    assert dagster_dev.records("profiles") == [(1, b"1"), (2, b"2")]


def test_a_run_launched_by_hand_cleans_a_log_that_no_sensor_would(dagster_dev: DagsterDev) -> None:
    config = {"ops": {"plan": {"config": {"logs": ["by-hand"], "requested": True}}}}

    run_id = launch(dagster_dev, "clean_logs", config)

    dagster_dev.wait_for_run("run by hand", is_it=lambda run: run["runId"] == run_id)
    assert dagster_dev.records("by-hand") == [(1, b"1"), (2, b"2")]


def test_a_topic_created_later_is_an_asset_by_itself(dagster_dev: DagsterDev) -> None:
    dagster_dev.wait_for("asset of the new topic", lambda: "later/clean" in asset_keys(dagster_dev))


def test_the_asset_page_shows_the_numbers_of_the_clean(dagster_dev: DagsterDev, page: Page) -> None:
    page.goto(f"{dagster_dev.url}/assets/server.schema.users/clean?view=partitions&partition=server.schema.users-0")

    expect(page.get_by_text("records_superseded").first).to_be_visible(timeout=PAGE_MS)
    expect(page.get_by_text("segments_new").first).to_be_visible(timeout=PAGE_MS)


def test_the_automation_page_shows_every_sensor_at_work(dagster_dev: DagsterDev, page: Page) -> None:
    page.goto(f"{dagster_dev.url}/automation")

    names = (
        "dirty_ratio_sensor",
        "erasure_sensor",
        "ingest_lag_sensor",
        "max_compaction_lag_sensor",
        "tombstone_expiry_sensor",
    )
    for name in names:
        expect(page.get_by_text(name).first).to_be_visible(timeout=PAGE_MS)


def test_the_lineage_shows_what_is_ingested_and_what_is_made_of_it(
    dagster_dev: DagsterDev, page: Page, picture: Picture
) -> None:
    page.goto(f"{dagster_dev.url}/assets/profiles/dirty?view=lineage&lineageScope=neighbors")

    expect(page.get_by_text("4 partitions", exact=True)).to_have_count(3, timeout=PAGE_MS)
    picture("ingest", 900)


def test_a_topic_is_two_sections_in_the_graph(dagster_dev: DagsterDev, page: Page, picture: Picture) -> None:
    page.goto(f"{dagster_dev.url}/assets/server.schema.users/clean?view=lineage&lineageScope=neighbors")

    expect(page.get_by_text("1 partition", exact=True)).to_have_count(2, timeout=PAGE_MS)
    picture("assets", 700)


def test_a_sensors_page_has_its_ticks(dagster_dev: DagsterDev, page: Page, picture: Picture) -> None:
    page.goto(f"{dagster_dev.url}/locations/__repository__@keptlog/sensors/dirty_ratio_sensor")

    expect(page.get_by_text("Cleans logs whose dirty ratio is above").first).to_be_visible(timeout=PAGE_MS)
    expect(page.get_by_text("1 run requested").first).to_be_visible(timeout=PAGE_MS)
    picture("sensor", 900)


def test_a_click_in_the_browser_cleans_a_log(dagster_dev: DagsterDev, page: Page, picture: Picture) -> None:
    dagster_dev.append("by-hand", ("b", "2"))
    before = {run["runId"] for run in dagster_dev.runs()}
    page.goto(f"{dagster_dev.url}/assets/by-hand/clean")

    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_role("button", name="All", exact=True).click()
    page.get_by_role("button", name=re.compile("Launch")).click()

    dagster_dev.wait_for_run(
        "run of the click", is_it=lambda run: run["runId"] not in before and run["jobName"] != "purge"
    )
    assert dagster_dev.records("by-hand") == [(2, b"2"), (3, b"2")]
    page.goto(f"{dagster_dev.url}/assets/by-hand/clean?view=overview")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("button", name="Plots").click()
    page.get_by_role("button", name="Events").click()
    expect(page.locator("canvas").first).to_be_visible(timeout=PAGE_MS)
    picture("clean-section", 900)
