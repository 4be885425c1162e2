"""A broker setting that contradicts a topic's own is named: no other program has changed anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def _no_other_sparks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "spark"))


@pytest.mark.parametrize(("own", "other", "of_broker"), [("max", "min", 6000), ("min", "max", 1000)])
def test_doctor_and_who_reads_name_the_broker_setting_and_the_topics(
    keptlog: Run, home: Path, own: str, other: str, of_broker: int
) -> None:
    store = open_home().store
    store.create_topic("users", 1, {"cleanup.policy": "compact", f"{own}.compaction.lag.ms": "5000"})
    store.create_topic("whole", 1, {"cleanup.policy": "compact"})
    (home / "server.properties").write_text(f"log.cleaner.{other}.compaction.lag.ms={of_broker}\n")
    said = (
        f"The topic sets {own}.compaction.lag.ms itself. {other}.compaction.lag.ms comes from the broker setting "
        f"log.cleaner.{other}.compaction.lag.ms (in server.properties, or "
        f"KEPTLOG_BROKER_LOG_CLEANER_{other.upper()}_COMPACTION_LAG_MS). Change one of the two"
    )
    read = keptlog("read", "users")
    assert (read.code, said in read.err) == (2, True)

    told = keptlog("doctor", "--no-probes", "--json").json
    [problem] = [each for check in told["checks"] for each in check["problems"] if each["subject"] == "users"]
    assert said in problem["what"]
    assert problem["cause"] == "a broker setting and the topic's own setting contradict each other"
    assert "keptlog topic alter users" in str(problem)

    assert keptlog("topic", "alter", "users", "--delete-config", f"{own}.compaction.lag.ms").code == 0
    assert keptlog("read", "users").code == 0
