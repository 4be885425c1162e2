"""Whether the addresses of a bootstrap list are of one cluster: those of two mix their records, and nothing fails.

Each client takes whichever address answers first, and an ingest has many clients: one tells where a log ends, others
read it. A list comes to have two clusters when a broker is gone, and another cluster's takes its address. A cluster
tells its clients where its brokers are:

    one of these       is of this cluster: it is not asked
    any other address  a broker that is down, a load balancer, a proxy, another listener, or another cluster: it is
                       asked by itself which cluster it is of

What can't be asked is not judged. Who looks for lag comes back each half minute, so an address that is of this cluster,
or says nothing, is asked again after some minutes only. One that refuses costs nothing, and is asked each time.
"""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
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
_AT_ONCE = 16

_asked: dict[tuple[str, str], float] = {}
"""By address and the id of the cluster that others of its list are of: when it was asked, by a clock for durations."""


def require_one_cluster(settings: ClientSettings, told: ClusterMetadata) -> None:
    """Refuse a bootstrap list that has an address of another cluster than a client of it was told of.

    Raises:
        InvalidConfig: names the address and both clusters.
    """
    listed, ours = addresses(settings.bootstrap or ""), _id_in(told)
    if len(listed) < 2 or not ours:  # one alone can't be of two
        return
    brokers = {address for each in told.brokers.values() for address in addresses(_written(str(each.host), each.port))}
    unknown = [_written(*each) for each in listed if each not in brokers]
    unknown = [each for each in unknown if not _was_asked(each, ours)]
    if not unknown:
        return
    other_cluster = partial(_other_cluster, settings, ours)
    with ThreadPoolExecutor(min(len(unknown), _AT_ONCE)) as threads:
        found = zip(unknown, threads.map(other_cluster, unknown), strict=True)
        others = [f"{address} is of cluster {theirs}" for address, theirs in found if theirs]
    if others:
        raise InvalidConfig(
            f"{settings.bootstrap} has brokers of several clusters: {', '.join(others)}, what answered first is of "
            f"cluster {ours}. Their records would be mixed: name brokers of one cluster only, as bootstrap "
            f"(--bootstrap HOST:PORT), or {BOOTSTRAP} in kafka.properties"
        )


def _other_cluster(settings: ClientSettings, ours: str, address: str) -> str | None:
    """The id of the cluster that an address is of, if that is another one."""
    theirs = None
    try:
        # A client would wait for one that refuses, too.
        host, _, port = address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        theirs = _cluster_of(settings.at(address))
    except ConnectionRefusedError:
        return None
    except (OSError, UnicodeError, OverflowError):
        pass  # no such host, or no answer: both may have taken their time
    if theirs in {None, ours}:
        _asked[address, ours] = _steady_s()
        return None
    return theirs


def _cluster_of(settings: ClientSettings) -> str | None:
    trouble = Trouble()
    try:
        admin = AdminClient(settings.for_admin(error_cb=trouble))
        told = ask(admin, trouble, lambda seconds: admin.list_topics(timeout=seconds), AFTER_SILENCE_SECONDS)
    except KafkaException:
        return None
    return _id_in(told)


def _id_in(told: ClusterMetadata) -> str | None:
    return cast("str | None", told.cluster_id)  # its annotations know of none


def _was_asked(address: str, cluster: str) -> bool:
    asked = _asked.get((address, cluster))
    return asked is not None and _steady_s() - asked < _ASK_AGAIN_SECONDS


def _written(host: str, port: int | None) -> str:
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
