"""The demo tells the truth: its own proof holds, and it says no when it does not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from examples import demo
from examples.generated_history import generate_repository
from examples.git_history import git_history, git_tree
from keptlog.home import open_home

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return generate_repository(tmp_path / "repository.git", commits=120)


@pytest.fixture
def dagster_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "dagster").mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KEPTLOG_SPARK_MASTER", "local[2]")
    with warnings.catch_warnings():
        yield


@pytest.mark.usefixtures("dagster_home")
def test_the_demo_proves_itself_twice_over_and_every_sensor_fires(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main([str(repository)]) == 0
    told = capsys.readouterr().out
    for sensor in ("dirty_ratio_sensor", "max_compaction_lag_sensor", "tombstone_expiry_sensor"):
        assert f"{sensor}: FIRES" in told
    assert "equal: every file, every blob" in told
    with dg.DagsterInstance.get() as instance:
        assert {run.job_name for run in instance.get_runs()} == {"clean_logs", "purge"}
        assert all(run.is_success for run in instance.get_runs())
    assert demo.main([str(repository)]) == 0, "a second telling begins afresh"


@pytest.mark.usefixtures("dagster_home")
def test_the_demo_leaves_a_home_with_other_topics_alone(repository: Path, tmp_path: Path) -> None:
    open_home().store.create_topic("mine", 1, {})
    assert demo.main([str(repository)]) == 0
    assert open_home().store.topics() == ["mine"]
    assert open_home(tmp_path / "home-demo").store.topics() == [demo.TOPIC]


@pytest.mark.usefixtures("dagster_home")
def test_what_differs_from_git_is_not_called_equal(repository: Path) -> None:
    home = open_home()
    home.store.create_topic(demo.TOPIC, 1, demo.SETTINGS)
    truth = git_tree(repository)
    with dg.DagsterInstance.ephemeral() as instance:
        telling = demo.Demo(home, instance, demo.TOPIC, 2_000_000_000_000, [])
        telling.append(list(git_history(repository)), 1)
        assert telling.is_equal_to(truth)
        assert not telling.is_equal_to(truth | {b"one more": b"file"})
