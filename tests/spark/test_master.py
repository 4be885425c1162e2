"""An address that leads nowhere is told in one line, before Java is started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from examples.ports import free_port
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.spark.master import require_form, require_way_there

GOOD = [
    "local",
    "local[1]",
    "local[*]",
    "local[4, 2]",
    "local-cluster[2,1,1024]",
    "yarn",
    "spark://host:7077",
    "spark://first:7077,second:7077",
    "spark://[::1]:7077",
    "k8s://https://host:6443",
    "k8s://host",
    "sc://host",
    "sc://host:15002/;token=secret",
]
BAD = {
    "nonsense": "begins like none of them",
    "http://host": "begins like none of them",
    "mesos://host:5050": "begins like none of them",
    "yarn-client": "begins like none of them",
    "local[0]": "number of threads",
    "local[-1]": "number of threads",
    "local[x]": "number of threads",
    "local[]": "number of threads",
    "locally": "number of threads",
    "spark://": "host or port is missing",
    "spark://host": "host or port is missing",
    "spark://host:port": "host or port is missing",
    "spark://first:7077,": "host or port is missing",
    "k8s://": "host is missing",
    "sc://": "host is missing",
    "sc://:15002": "host is missing",
    "sc://host:port": "host is missing",
}


@pytest.fixture
def closed_port() -> int:
    """One at which nobody listens."""
    return free_port()


@pytest.mark.parametrize("master", GOOD)
def test_spark_s_own_addresses_are_taken(master: str) -> None:
    require_form(master)


@pytest.mark.parametrize("master", BAD)
def test_any_other_address_is_refused_with_what_is_wrong_and_those_there_are(master: str) -> None:
    with pytest.raises(InvalidConfig, match=r"KEPTLOG_SPARK_MASTER.* spark_config, be local\[\*\]") as refused:
        require_form(master)
    assert BAD[master] in str(refused.value)


def test_no_token_is_shown() -> None:
    with pytest.raises(InvalidConfig) as refused:
        require_form("sc://:1/;token=planted")
    assert "planted" not in str(refused.value)


def test_yarn_needs_a_folder_with_its_settings(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="let HADOOP_CONF_DIR or YARN_CONF_DIR name the folder"):
        require_way_there("yarn", {})
    with pytest.raises(InvalidConfig, match="HADOOP_CONF_DIR=/nowhere is no folder"):
        require_way_there("yarn", {"HADOOP_CONF_DIR": "/nowhere"})
    require_way_there("yarn", {"YARN_CONF_DIR": str(tmp_path)})


def test_of_a_cluster_s_masters_one_must_listen(closed_port: int) -> None:
    with pytest.raises(StorageUnavailable, match=f"127.0.0.1:{closed_port}: Connection refused"):
        require_way_there(f"spark://127.0.0.1:{closed_port}", {})
    with socket.create_server(("127.0.0.1", 0)) as server:
        require_way_there(f"spark://127.0.0.1:{closed_port},127.0.0.1:{server.getsockname()[1]}", {})


def test_nobody_is_asked_where_nothing_is_to_be_asked() -> None:
    for master in ("local[*]", "k8s://https://127.0.0.1:1", ""):
        require_way_there(master, {})
