"""What lies in deploy/ fits together: the same commands everywhere, all files there, no password that is known."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.deploy.parts import DEPLOY, PARTS, ROOT, services, variables


def pod() -> dict[str, Any]:
    """What Kubernetes' pod is to be."""
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes/keptlog.yaml").read_text()))
    [deployment] = [each for each in documents if each["kind"] == "Deployment"]
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def containers() -> dict[str, Any]:
    """Of Kubernetes' pod, by name."""
    return {each["name"]: each for each in pod()["containers"]}


@pytest.mark.parametrize("name", PARTS)
def test_kubernetes_starts_what_compose_starts(name: str) -> None:
    service, container = services()[name], containers()[name]
    assert container["command"] == service["command"]
    given = {each["name"]: each["value"] for each in container.get("env", ())}
    assert given == service.get("environment", {})
    assert {each["mountPath"] for each in container["volumeMounts"]} == {
        each.partition(":")[2] for each in service["volumes"]
    }


@pytest.mark.parametrize("name", PARTS)
def test_each_part_is_checked_in_the_same_way(name: str) -> None:
    probe = containers()[name]["livenessProbe"]
    checked = services()[name]["healthcheck"]["test"]
    if "httpGet" in probe:
        assert probe["httpGet"]["path"] in checked[-1]
    else:
        assert ["CMD", *probe["exec"]["command"]] == checked


def test_the_daemons_check_fails_after_the_five_minutes_that_the_docs_name() -> None:
    """Dagster's own limit is half an hour."""
    daemon = services()["daemon"]
    assert "DAGSTER_DAEMON_HEARTBEAT_TOLERANCE=300" in daemon["healthcheck"]["test"]
    assert "five minutes | the health check of the part `daemon`" in (ROOT / "docs/deploy.md").read_text()


def test_there_are_no_other_parts() -> None:
    assert set(containers()) == set(PARTS)
    assert set(services()) == {*PARTS, "pod", "postgres"}


def test_a_new_pod_lets_no_group_write_the_signing_key() -> None:
    """With a group of the volume, Kubernetes' default is to let it write each file, at each mount."""
    given = pod()["securityContext"]
    assert given["fsGroup"] == given["runAsGroup"]
    assert given.get("fsGroupChangePolicy") == "OnRootMismatch"


def test_the_docs_say_what_becomes_of_each_part_that_dies() -> None:
    rows = re.findall(r"^\| `(\w+)`[^|]*\|[^|]*\|[^|]*\|[^|]*\|$", (ROOT / "docs/deploy.md").read_text(), re.MULTILINE)
    assert set(rows) >= set(services())


def test_client_and_server_of_spark_name_the_same_session() -> None:
    server = services()["spark"]["command"]
    session_id, port = server[server.index("--session-id") + 1], server[server.index("--port") + 1]
    variable = "KEPTLOG_SPARK_MASTER"
    named = {
        name: each["environment"][variable]
        for name, each in services().items()
        if variable in each.get("environment", {})
    }
    master = f"sc://localhost:{port}/;user_id=keptlog;session_id={session_id}"
    assert named == {"code": master, "metrics": master}


def test_the_docs_name_each_part_that_is_to_be_told_of_another_spark() -> None:
    [sentence] = re.findall(r"set `KEPTLOG_SPARK_MASTER` of [^,]*,", (ROOT / "docs/deploy.md").read_text())
    told = {name for name, each in services().items() if "KEPTLOG_SPARK_MASTER" in each.get("environment", {})}
    assert set(re.findall(r"`([a-z]+)`", sentence)) == told


def test_all_that_the_image_is_made_of_is_there() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    copied = [path for line in re.findall(r"^COPY (?!--)(.*)$", dockerfile, re.MULTILINE) for path in line.split()[:-1]]
    assert "deploy/workspace.yaml" in copied
    assert [path for path in copied if not (ROOT / path).exists()] == []
    [ignored] = [(DEPLOY / "Dockerfile.dockerignore").read_text()]
    assert [path for path in copied if path.split("/")[0] in ignored.splitlines()] == []


def test_no_stage_of_the_image_has_the_passwords_in_it() -> None:
    """The first one copies all that is not ignored."""
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert {"**/*.env", "build"} <= set(ignored)


def test_the_database_is_asked_where_the_parts_ask_it() -> None:
    """The server that a first start has for a while listens at its socket alone."""
    assert "--host" in services()["postgres"]["healthcheck"]["test"]


def test_the_storage_takes_what_the_example_of_the_variables_has() -> None:
    asked = set(re.findall(r"\{env: (\w+)\}", (DEPLOY / "storage.yaml").read_text()))
    known = variables((DEPLOY / "keptlog.env.example").read_text())
    assert asked <= set(known)
    assert [name for name, value in known.items() if value and re.search("PASSWORD|TOKEN", name)] == []


def test_appending_the_storage_to_the_repositorys_settings_says_nothing_twice() -> None:
    rest, storage = ((ROOT / "dagster.yaml").read_text(), (DEPLOY / "storage.yaml").read_text())
    assert not set(yaml.safe_load(rest)) & set(yaml.safe_load(storage))
