"""A topic that comes later is in the asset graph without a hand: on a real webserver, daemon and code server."""

from __future__ import annotations

from tests.shared_dagster.conftest import LATE_TOPIC, SharedDagster


def partitions(shared: SharedDagster, location: str) -> dict[str, list[str]]:
    """What the webserver shows of a code location: its assets with their partition keys."""
    text = """query ($where: RepositorySelector!) {repositoryOrError(repositorySelector: $where) {
        ... on Repository {assetNodes {assetKey {path} partitionKeys}}}}"""
    where = {"repositoryLocationName": location, "repositoryName": "__repository__"}
    found = shared.query(text, where=where)["repositoryOrError"].get("assetNodes", [])
    return {"/".join(node["assetKey"]["path"]): node["partitionKeys"] for node in found}


def test_a_topic_that_came_later_is_on_the_webserver_by_itself(cleaned: SharedDagster) -> None:
    late = f"{LATE_TOPIC}/clean"
    cleaned.wait_for(f"{late} on the webserver", lambda: late in partitions(cleaned, "disk"))

    assert partitions(cleaned, "disk")[late] == [f"{LATE_TOPIC}-0", f"{LATE_TOPIC}-1"]
    assert "users/clean" in partitions(cleaned, "disk")
    assert late not in partitions(cleaned, "lake")
