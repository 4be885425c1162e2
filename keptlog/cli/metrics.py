"""``keptlog metrics``: how all logs stand, for Prometheus and what reads its formats; also while Dagster is dead.

A look is one thing, a scrape another. The process looks every few seconds, and a scrape gets what was seen last: it is
answered at once, also while a catalog or a broker is waited for. ``keptlog_look_timestamp_seconds`` says how old it is.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click
from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from keptlog.cli.arguments import seconds_between_looks
from keptlog.cli.groups import HelpfulGroup
from keptlog.cli.home_look import HomeLook, HomeSeen, tell_no_topics
from keptlog.cli.output import EXIT_FAILED, clock_ms, require_stdout
from keptlog.cli.own_process import until_stopped
from keptlog.cli.unopened import unopened_store
from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, first_line
from keptlog.home import monotonic_ms
from keptlog.interrupted import interrupt
from keptlog.log.broker import BrokerConfig
from keptlog.log.told.conditions import Sighting, Thresholds
from keptlog.log.told.exposition import DEFAULT_MAX_SERIES, Logs, Look, Tick, exposition, reference
from keptlog.log.told.gauges import Family, SourceLag
from keptlog.log.topic_partition import TopicPartition
from keptlog.notify.settings import notify_thresholds
from keptlog.notify.ticks import last_ticks
from keptlog.passes.observer import Observer, Overview, observe
from keptlog.settings import broker_settings, home_path
from keptlog.sinks.new_file import place_for
from keptlog.whole_file import replace_file

if TYPE_CHECKING:
    from keptlog.ingest.lag import LagScan

_PORT = 9464
_STDOUT = "-"
_max_series_option = click.option(
    "--max-series",
    metavar="COUNT",
    type=click.IntRange(min=1),
    default=DEFAULT_MAX_SERIES,
    show_default=True,
    envvar="KEPTLOG_METRICS_MAX_SERIES",
    show_envvar=True,
    help="At most so many series of one name. With more logs there are only topics, with more topics only totals.",
)


@click.group(cls=HelpfulGroup, short_help="Show Prometheus how all logs stand.")
def metrics() -> None:
    """Show Prometheus how all logs stand: Kafka's cleaner metrics under jmx_exporter's names, and keptlog's own.

    They need no Dagster. docs/metrics.md lists them; deploy/monitoring has alert rules and a Grafana board.
    """


@metrics.command(short_help="Answer Prometheus's scrapes.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(1, 65_535), default=_PORT, show_default=True, help="The port to listen at.")
@click.option(
    "--every",
    "every_s",
    metavar="SECONDS",
    type=seconds_between_looks,
    default=15,
    show_default=True,
    help="How often to look.",
)
@_max_series_option
def serve(host: str, port: int, every_s: int, max_series: int) -> None:
    """Answer scrapes at http://HOST:PORT/metrics until it is stopped.

    Whoever reaches the port sees names of topics, and no key or value of a record. A scrape gets what the last look has
    found; keptlog_look_timestamp_seconds says when that was.
    """
    signal.signal(signal.SIGTERM, interrupt)
    looks = _Looks(_Observing().look, max_series)
    shown = Shown(looks.families())
    try:
        server, _ = start_http_server(port, host, shown.registry)
    except OSError as error:
        raise InvalidConfig(
            f"can't listen at {host}:{port} ({error.strerror}): take another --host or --port"
        ) from None
    click.echo(f"keptlog: metrics at {_url(host, port)}; stop with Ctrl-C", err=True)
    try:
        with until_stopped():
            while True:
                time.sleep(every_s)
                shown.families = looks.families()
    finally:
        server.shutdown()


@metrics.command(short_help="Write them to a file once.")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@_max_series_option
def write(file: str, max_series: int) -> None:
    """Look once and write FILE, whole or not at all, as node_exporter's textfile collector wants it; - is stdout.

    Exit code 1: the catalog, or the storage of all topics, did not answer, no catalog is there, or broker settings
    can't be accepted. The file says so too.
    """
    if file == _STDOUT:
        require_stdout("metrics")
    path = None if file == _STDOUT else place_for(Path(file))
    shown = Shown(_Looks(lambda now_ms: observe(unopened_store(), now_ms=now_ms), max_series).families())
    text = generate_latest(shown.registry)
    if path is None:
        click.echo(text, nl=False)
    else:
        _replace(path, text)
    if not shown.is_up:
        sys.exit(EXIT_FAILED)


def _url(host: str, port: int) -> str:
    """Where scrapes go; the colons of an IPv6 address stand in brackets."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"


def _replace(path: Path, text: bytes) -> None:
    """Write the file whole; a disk that is full does not say itself which file it had no room for."""
    try:
        # A new one is for everybody, whatever the umask takes away: who reads it is another user.
        replace_file(path, text, None if path.exists() else 0o644)
    except OSError as error:
        what = f"{path} can't be written: {error.strerror or error}"
        raise StorageUnavailable(f"{what}; what was there is as it was, mend that and try again") from error


@dataclass(eq=False)
class Shown(Collector):
    """What scrapes get."""

    families: Sequence[Metric] = ()
    registry: CollectorRegistry = field(default_factory=lambda: CollectorRegistry(auto_describe=False))

    def __post_init__(self) -> None:
        self.registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """What the last look has found."""
        return self.families

    def describe(self) -> Iterable[Metric]:
        """All that there may be: of a collector without names, a scrape that asks for some (``name[]=``) gets none."""
        return [_metric(each) for each in reference()]

    @property
    def is_up(self) -> bool:
        """Whether a catalog is there, it and the storage of the topics answered, and the settings were accepted."""
        return any(each.name == "keptlog_up" and each.samples[0].value for each in self.families)


@dataclass
class _Observing:
    """Looks at the logs again and again, as the broker settings have it by then: runs read them anew as well."""

    _observer: Observer | None = None

    def look(self, now_ms: int) -> Overview:
        """How all logs stand.

        Raises:
            InvalidConfig: a broker setting can't be accepted.
            StorageUnavailable: the catalog can't be reached, or not one of its topics.
        """
        if self._observer is None or self._observer.store.broker_settings != broker_settings(home_path()):
            self._observer = Observer(unopened_store(), monotonic_ms)
        return self._observer.look(now_ms)


@dataclass
class _Looks:
    """Looks at the home, and makes of what it finds what is shown; ``observe`` looks at the logs."""

    observe: Callable[[int], Overview]
    max_series: int

    def families(self) -> list[Metric]:
        """Look once; what can't be had is told on stderr, and has no number."""
        now_ms, began_ms = clock_ms(), monotonic_ms()
        try:
            seen = self._looking.look(now_ms)
        except KeptlogError as error:
            click.echo(f"keptlog: {first_line(error)}", err=True)
            seen = HomeSeen(Sighting(now_ms))
        tell_no_topics(self._looking.home, seen)
        if seen.outage:
            click.echo(f"keptlog: {first_line(seen.outage)}", err=True)
        look = Look(
            str(self._looking.home),
            seen.sighting,
            _logs(seen.overview) if seen.overview else None,
            monotonic_ms() - began_ms,
            (seen.overview.broker if seen.overview else BrokerConfig()).log_cleaner_enable,
            _lags(seen.lags) if seen.lags else {},
            _ticks(self._looking.home),
        )
        return [_metric(each) for each in exposition(look, self.max_series) if each.rows]

    @cached_property
    def _looking(self) -> HomeLook:
        return HomeLook(home_path(), _thresholds(), self.observe)


def _thresholds() -> Thresholds:
    """Those of ``keptlog notify``: an alert and a message are to mean the same."""
    try:
        return notify_thresholds(os.environ)
    except InvalidConfig as error:
        click.echo(f"keptlog: {error}; until then the usual times count", err=True)
        return Thresholds()


def _logs(overview: Overview) -> Logs:
    return Logs(
        overview.assessments,
        overview.last_passes,
        overview.known_erasures,
        overview.holdings,
        overview.unreadable,
        overview.behind,
    )


def _ticks(home: Path) -> list[Tick]:
    try:
        ticks = last_ticks(home)
    except KeptlogError:  # which the look has told of, as of each that can't be read
        return []
    return [Tick(each.sensors, each.at_ms) for each in ticks if not isinstance(each, KeptlogError)]


def _lags(scan: LagScan) -> dict[TopicPartition, SourceLag]:
    lags = {}
    for topic in scan.topics:
        for name in topic.names:
            stopped, _, log, lag = topic.lag_of(name)
            lags[name] = SourceLag(lag, stopped is not None, log.waiting if log else 0)
    return lags


def _metric(family: Family) -> Metric:
    metric = GaugeMetricFamily(family.name, family.meaning, labels=family.labels)
    for values, number in family.rows:
        metric.add_metric(values, number)
    return metric
