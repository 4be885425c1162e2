"""Alert rules and board of deploy/monitoring, over scrapes of a home with every trouble and of the same home mended."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from prometheus_client import generate_latest

from keptlog.cli.metrics import Shown, _metric
from keptlog.log.assessment import assess
from keptlog.log.config import TopicConfig
from keptlog.log.segment import Log
from keptlog.log.told.conditions import Matter, Sighting
from keptlog.log.told.exposition import Logs, Look, exposition
from keptlog.log.told.gauges import SourceLag
from keptlog.log.topic_partition import TopicPartition
from tests.metrics.conftest import Troubles, scrape_text
from tests.metrics.promql import Scrape
from tests.mock_broker import mock_broker
from tests.notify.conftest import Scene

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
RULES: list[dict[str, Any]] = yaml.safe_load((MONITORING / "keptlog-alerts.yaml").read_text())["groups"][0]["rules"]
BOARD: dict[str, Any] = json.loads((MONITORING / "keptlog-board.json").read_text())
ALERTS_OF_THE_LOOK = {"KeptlogMetricsMissing", "KeptlogNotLooking", "KeptlogCatalogDown"}


class Scrapes(NamedTuple):
    """Texts as of one time, ``at_s``."""

    broken: str
    mended: str
    without_catalog: str
    at_s: float


@pytest.fixture
def scrapes(scene: Scene) -> Scrapes:
    return _made(scene)


def _made(scene: Scene, made: list[Scrapes] = []) -> Scrapes:  # noqa: B006  # it takes seconds, and is never changed
    if not made:
        with mock_broker() as broker:
            troubles = Troubles(scene, broker)
            broken = scrape_text(scene)
            troubles.mend()
            mended = scrape_text(scene)
        (scene.home / "catalog.db").write_bytes(b"this is no database" * 1000)
        made.append(Scrapes(broken, mended, scrape_text(scene), scene.now_ms / 1000))
    return made[0]


def test_every_rule_and_every_panel_tells_the_broken_home_from_the_mended(scrapes: Scrapes) -> None:
    at_s = scrapes.at_s
    of_conditions = {rule["alert"] for rule in RULES} - ALERTS_OF_THE_LOOK
    assert firing(Scrape.of(scrapes.broken, at_s)) == of_conditions
    assert firing(Scrape.of(scrapes.mended, at_s)) == set()
    for looked_s in (-3600, 3600):  # the clock of who looks may have been ahead
        assert firing(Scrape.of(scrapes.mended, at_s + looked_s)) == {"KeptlogNotLooking"}
    assert firing(Scrape.of("", at_s)) == {"KeptlogMetricsMissing"}
    # Spark and sensors are looked at without a catalog; of the logs nobody knows anything.
    assert firing(Scrape.of(scrapes.without_catalog, at_s)) == {"KeptlogCatalogDown"}
    every_word = scrapes.broken + scrapes.mended + scrapes.without_catalog
    assert "key-of-a-person" not in every_word
    assert "planted-connect-token" not in every_word
    the_board_shows_both(Scrape.of(scrapes.broken, at_s), Scrape.of(scrapes.mended, at_s))


@pytest.mark.parametrize(
    "instead",
    [pytest.param(lambda _: None, id="nothing there"), pytest.param(Path.touch, id="a file there")],
)
def test_a_catalog_whose_storage_is_gone_is_down(scene: Scene, instead: Callable[[Path], object]) -> None:
    """What was remembered of the topics is gone too: it would be believed until one of them changes."""
    for topic in ("orders", "users"):
        scene.topic(topic)
    shutil.rmtree(scene.home / "cache", ignore_errors=True)
    (scene.home / "warehouse").rename(scene.home / "not mounted")
    instead(scene.home / "warehouse")
    scene.environment.setenv("KEPTLOG_NOW_MS", str(scene.now_ms))
    written = scene.keptlog("metrics", "write", "-")
    assert written.code == 1
    assert firing(Scrape.of(written.out, scene.now_ms / 1000)) == {"KeptlogCatalogDown"}
    assert "kafka_log" not in written.out


def firing(scrape: Scrape) -> set[str]:
    """The alerts whose expression finds something."""
    return {rule["alert"] for rule in RULES if scrape.found(rule["expr"])}


def expressions(job: str = ".*", instance: str = ".*") -> dict[str, str]:
    """Of the board's panels, with all topics chosen."""
    chosen = {"$topic": ".*", "$job": job, "$instance": instance}
    return {
        f"{panel['title']} {target['refId']}": re.sub(r"\$\w+", lambda found: chosen[found[0]], target["expr"])
        for panel in BOARD["panels"]
        for target in panel.get("targets", ())
    }


def labelled(text: str, job: str, instance: str) -> str:
    """A scrape as Prometheus keeps it."""
    added = f'job="{job}",instance="{instance}"'
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    of_labels = [re.sub(r"^(\w+)\{", rf"\1{{{added},", line) for line in lines]
    return "".join(re.sub(r"^(\w+) ", rf"\1{{{added}}} ", line) + "\n" for line in of_labels)


def test_the_board_shows_the_homes_that_are_chosen_and_no_broker(scrapes: Scrapes) -> None:
    """Where one Prometheus has Kafka's own cleaner too, under the same names, and a second home with these topics."""
    home = labelled(scrapes.broken, "keptlog", "prod")
    kafkas = "\n".join(line for line in scrapes.mended.splitlines() if line.startswith("kafka_"))
    both = home + labelled(scrapes.mended, "keptlog", "stage") + labelled(kafkas, "kafka", "broker-0")
    alone = Scrape.of(home, scrapes.at_s)
    for name, expression in expressions("keptlog", "prod").items():
        shown = alone.found(expression)
        assert shown, name
        assert Scrape.of(both, scrapes.at_s).found(expression) == shown, name
    by_topic = [expression for expression in expressions().values() if " by (" in expression]
    for expression in by_topic:
        assert {dict(labels)["instance"] for labels in alone.found(expression)} == {"prod"}


def test_the_board_offers_only_what_keptlog_tells_of() -> None:
    """All that can be chosen is not all that there is: a broker is none of it."""
    variables = {each["name"]: each for each in BOARD["templating"]["list"]}
    asked = [variables[name]["query"]["query"] for name in ("job", "instance", "topic")]
    assert [query.startswith("label_values(keptlog_") for query in asked] == [True] * 3
    assert ["allValue" in variables[name] for name in ("job", "instance")] == [False] * 2
    for asked_for in (target["expr"] for panel in BOARD["panels"] for target in panel.get("targets", ())):
        series = re.findall(r"(?:kafka_log|keptlog)_\w+", asked_for)
        assert asked_for.count('{job=~"$job", instance=~"$instance"') == len(series)


def the_board_shows_both(broken: Scrape, mended: Scrape) -> None:
    """No panel is empty, but where nothing is wrong and no log has a deadline."""
    assert [name for name, expression in expressions().items() if not broken.found(expression)] == []
    empty = [name for name, expression in expressions().items() if not mended.found(expression)]
    assert empty == ["Conditions A", "Next deadline A"]
    [(_, wrong)] = broken.found(expressions()["Wrong now A"]).items()
    assert wrong == len(broken.found('keptlog_condition{level="broken"}'))
    assert list(mended.found(expressions()["Wrong now A"]).values()) == [0]


def test_prometheus_itself_says_the_same_of_the_rules(scrapes: Scrapes, tmp_path: Path) -> None:
    """Its own engine, where it is installed, on the same scrapes."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    for name, text, expected in (
        ("broken", scrapes.broken, {rule["alert"] for rule in RULES} - ALERTS_OF_THE_LOOK),
        ("mended", scrapes.mended, set()),
        ("without catalog", scrapes.without_catalog, {"KeptlogCatalogDown"}),
    ):
        file = tmp_path / f"{name.replace(' ', '-')}.yaml"
        file.write_text(yaml.safe_dump(_promtool_test(Scrape.of(text, scrapes.at_s), expected)))
        judged = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
        assert judged.returncode == 0, f"{name}: {judged.stdout}{judged.stderr}"


def _promtool_test(scrape: Scrape, expected: set[str]) -> dict[str, Any]:
    """What promtool wants to know. It counts time from 0, so times are told as of then; each look is a minute later."""
    minutes = 120
    series = []
    for name, vector in scrape.by_name.items():
        for labels, number in vector.items():
            told = ",".join(f"{label}={json.dumps(value)}" for label, value in sorted(labels))
            is_time = name.endswith("_timestamp_seconds")
            values = f"{number - scrape.at_s:.3f}+60x{minutes}" if is_time else f"{number}+0x{minutes}"
            series.append({"series": f"{name}{{{told}}}", "values": values})
    tests = []
    for alert, expression in ((rule["alert"], rule["expr"]) for rule in RULES):
        fires = {"labels": f"{{alertname={json.dumps(alert)}}}", "value": len(scrape.found(expression))}
        asked = f"count by (alertname) (ALERTS{{alertstate='firing',alertname='{alert}'}})"
        samples = [fires] if alert in expected else []
        tests.append({"eval_time": f"{minutes}m", "expr": asked, "exp_samples": samples})
    rules = str(MONITORING / "keptlog-alerts.yaml")
    one = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    return {"rule_files": [rules], "evaluation_interval": "1m", "tests": [one]}


def test_one_home_that_nobody_tells_of_is_missed_though_another_is_told_of() -> None:
    def scraped(up: int, **told: int) -> str:
        targets = (("a", 1), ("b", up), ("node", 0))
        lines = [f'up{{job="keptlog",instance="{instance}"}} {value}' for instance, value in targets]
        lines += [f'keptlog_up{{job="keptlog",instance="{instance}"}} {value}' for instance, value in told.items()]
        return "".join(f"{line}\n" for line in lines)

    both = Scrape.of(scraped(1, a=1, b=1), 0)
    assert firing(both) == set()
    one = Scrape.of(scraped(0, a=1), 600, both)
    assert firing(one) == {"KeptlogMetricsMissing"}
    days_later = Scrape.of(scraped(0, a=1), 6 * 86_400, both)
    assert firing(days_later) == {"KeptlogMetricsMissing"}
    missing = RULES[0]["expr"]
    assert [dict(labels)["instance"] for labels in one.found(missing)] == ["b"]


def of_homes(name: str, rest: str = "", **numbers: int) -> str:
    """A series of topic ``users`` in each of some homes, and its number."""
    labels = 'job="keptlog",instance="{}",topic="users"'
    return "".join(f"{name}{{{labels.format(home)}{rest}}} {number}\n" for home, number in numbers.items())


def found(alert: str, text: str) -> dict[tuple[str, str], float]:
    """What a rule finds, by instance and topic."""
    [expression] = [rule["expr"] for rule in RULES if rule["alert"] == alert]
    vector = [(dict(labels), number) for labels, number in Scrape.of(text, 0).found(expression).items()]
    return {(labels.get("instance", ""), labels.get("topic", "")): number for labels, number in vector}


def test_what_homes_with_a_topic_of_one_name_have_is_not_added_up() -> None:
    behind = of_homes("keptlog_ingest_lag_max_offsets", ',partition="0"', prod=6_000, stage=6_000)
    assert found("KeptlogIngestBehind", behind) == {}
    behind = of_homes("keptlog_ingest_lag_max_offsets", ',partition="0"', prod=6_000, stage=12_000)
    assert found("KeptlogIngestBehind", behind) == {("stage", "users"): 12_000}
    late = of_homes("keptlog_holders_late", prod=0, stage=1)
    assert found("KeptlogPurgeLate", late) == {("stage", "users"): 1}


@pytest.mark.parametrize("most", [100, 2, 1])
def test_logs_that_are_a_little_behind_are_no_log_that_is_far_behind(most: int) -> None:
    """However many there are, and whatever the detail."""
    names = [TopicPartition(topic, partition) for topic in ("orders", "users") for partition in (0, 1)]
    logs = [Log(name, TopicConfig(), (), 0, 0) for name in names]
    for lag, expected in ((6_000, []), (12_000, [12_000])):
        lags = {log.topic_partition: SourceLag(lag if log is logs[0] else 6_000, False) for log in logs}
        look = Look("home", Sighting(0), Logs([assess(log, 0) for log in logs]), lags=lags)
        text = generate_latest(Shown([_metric(each) for each in exposition(look, most) if each.rows]).registry).decode()
        assert list(found("KeptlogIngestBehind", text).values()) == expected


def test_each_alert_says_of_which_home_it_is() -> None:
    for rule in RULES:
        if rule["alert"] != "KeptlogMetricsMissing":  # where nobody tells, there may be no home to name
            assert rule["annotations"]["summary"].startswith("{{ $labels.instance }}: ")
        for labels in re.findall(r"\bby \(([^)]*)\)", rule["expr"]):
            assert {"job", "instance"} <= set(labels.split(", "))


def test_the_board_shows_the_age_of_the_home_that_was_looked_at_longest_ago() -> None:
    looks = "".join(
        f'keptlog_look_timestamp_seconds{{instance="{each}"}} {at_s}\n' for each, at_s in (("a", 900), ("b", 100))
    )
    [age_s] = Scrape.of(looks, 1000).found(expressions()["Age of all this A"]).values()
    assert age_s == 900


def test_what_may_pass_by_itself_is_an_alert_only_if_it_lasts() -> None:
    for matter in (Matter.UNREADABLE, Matter.DEADLINE, Matter.INGEST, Matter.BROKER, Matter.SPARK):
        rules = [rule for rule in RULES if f'condition="{matter}"' in rule["expr"]]
        assert rules
        assert [rule["alert"] for rule in rules if "for" not in rule] == []


def test_each_alert_says_what_is_wrong_and_what_to_do() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "action"}
        for text in rule["annotations"].values():
            assert text.endswith(".")
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)


def test_who_mends_a_setting_is_told_what_reads_it_at_the_start() -> None:
    """With a variable ``keptlog metrics serve`` would go on showing it as it was, and the alert would not end."""
    [action] = [each["annotations"]["action"] for each in RULES if each["alert"] == "KeptlogCleanerDisabled"]
    assert "start what has read it anew: Dagster, and keptlog metrics where it was a variable" in action


def test_panels_lie_beside_each_other_and_not_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24, panel["title"]
        assert taken.isdisjoint(cells), panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    variables = {each["name"] for each in BOARD["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(BOARD["panels"]))) <= variables
