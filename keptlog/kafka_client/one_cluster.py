"""Whether the addresses of a bootstrap list are of one cluster: those of two mix their records, and nothing fails.

Each client takes whichever address answers first, and an ingest has many clients: one tells where a log ends, others
read it. A list comes to have two clusters when a broker is gone, and another cluster's takes its address. A cluster
tells its clients where its brokers are:

    one of these       is of this cluster: it is not asked
    any other address  a broker that is down, a load balancer, a proxy, another listener, or another cluster: it is
                       asked by itself which cluster it is of

What can't be asked is not judged, and is left out for whoever reads or writes: it may answer a moment later, as another
cluster's. In its place they get brokers that the cluster named, or too few would be left in a rolling restart; but not
hundreds, as each error names them. Who looks for lag comes back each half minute, so an address that is of this
cluster, or does not say, is asked again after some minutes only.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from threading import Thread
from time import monotonic as _steady_s  # noqa: TID251  # when a broker was asked, which no log depends on
from typing import cast

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from keptlog.errors import InvalidConfig
from keptlog.kafka_client.errors import AFTER_SILENCE_SECONDS, Trouble, ask
from keptlog.kafka_client.settings import BOOTSTRAP, ClientSettings
from keptlog.log.broker_addresses import addresses

_CONNECT_SECONDS = 1.0
"""Less than an answer: of an address that swallows everything nobody waits for more."""
_ASK_AGAIN_SECONDS = 300.0
_ENOUGH = 5
"""Addresses to begin with: whichever answers tells the others."""

_asked: dict[tuple[str, str], tuple[float, bool]] = {}
"""By address and the id of the cluster that others of its list are of: when it was asked, by a clock for durations, and
whether it said that it is of this one, too."""


def require_one_cluster(settings: ClientSettings, told: ClusterMetadata) -> ClientSettings:
    """Refuse a bootstrap list that has an address of another cluster than a client of it was told of.

    Returns:
        The settings for clients that are to reach no other: with those addresses only that are surely of this one. If
            any is left out, with some of its brokers.

    Raises:
        InvalidConfig: names the address and both clusters.
    """
    listed, ours = [_written(*each) for each in addresses(settings.bootstrap or "")], _id_in(told)
    if len(listed) < 2 or not ours:  # one alone can't be of two
        return settings
    brokers = _brokers_in(told)
    unknown = [each for each in listed if each not in brokers and not _was_asked(each, ours)]
    found = _clusters_of(settings, unknown)
    others = {address: theirs for address, theirs in found.items() if theirs != ours}
    now = _steady_s()
    _asked.update({(each, ours): (now, each in found) for each in unknown if each not in others})
    if others:
        shown = ", ".join(f"{address} is of cluster {theirs}" for address, theirs in others.items())
        raise InvalidConfig(
            f"{settings.bootstrap} has brokers of several clusters: {shown}, what answered first is of "
            f"cluster {ours}. Their records would be mixed: name brokers of one cluster only, as bootstrap "
            f"(--bootstrap HOST:PORT), or {BOOTSTRAP} in kafka.properties"
        )
    own = [each for each in listed if each in brokers or _asked[each, ours][1]]
    if own == listed:
        return settings
    some = list(dict.fromkeys([*own, *sorted(brokers)]))[: max(_ENOUGH, len(listed))]
    return settings.at(",".join(some))


def is_of_cluster(settings: ClientSettings, told: ClusterMetadata, other: str) -> bool:
    """Whether an address of another list is of the cluster that a client was told of; false if none of it says so."""
    listed, ours = [_written(*each) for each in addresses(other)], _id_in(told)
    if not {*listed}.isdisjoint(_brokers_in(told)):
        return True
    return ours is not None and ours in _clusters_of(settings, listed).values()


def _clusters_of(settings: ClientSettings, unknown: Iterable[str]) -> dict[str, str]:
    """The ids of the clusters that addresses are of, as far as they say it in time: a name server may take longer."""
    found: dict[str, str] = {}

    def note(address: str) -> None:
        if theirs := _cluster_at(settings, address):
            found[address] = theirs

    # Nobody waits for one that is late, nor does the end of the process.
    threads = [Thread(target=note, args=(each,), daemon=True) for each in unknown]
    until = _steady_s() + AFTER_SILENCE_SECONDS
    for each in threads:
        each.start()
    for each in threads:
        each.join(max(0.0, until - _steady_s()))
    return dict(found)


def _cluster_at(settings: ClientSettings, address: str) -> str | None:
    """The id of the cluster that an address is of, if it says it."""
    try:
        # A client would wait for one that refuses, too.
        host, _, port = address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, UnicodeError, OverflowError):
        return None
    return _cluster_of(settings.at(address))


def _cluster_of(settings: ClientSettings) -> str | None:
    trouble = Trouble()
    try:
        admin = AdminClient(settings.for_admin(error_cb=trouble))
        told = ask(admin, trouble, lambda seconds: admin.list_topics(timeout=seconds), AFTER_SILENCE_SECONDS)
    except KafkaException:
        return None
    return _id_in(told)


def _brokers_in(told: ClusterMetadata) -> list[str]:
    where = [_written(str(each.host), each.port) for each in told.brokers.values()]
    return [_written(*address) for each in where for address in addresses(each)]


def _id_in(told: ClusterMetadata) -> str | None:
    return cast("str | None", told.cluster_id)  # its annotations know of none


def _was_asked(address: str, cluster: str) -> bool:
    asked = _asked.get((address, cluster))
    return asked is not None and _steady_s() - asked[0] < _ASK_AGAIN_SECONDS


def _written(host: str, port: int | None) -> str:
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
