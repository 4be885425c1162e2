"""How many partitions a topic has, as its table says, and whether that can be.

Whoever takes away a partition in the property has taken a log: keys are appended to another one, and what is in the
files is no part of the topic. A topic never loses a partition. So a number is wrong if the table remembers something of
a log beyond it. That can't be seen where nothing was ever remembered of the logs beyond.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from keptlog.errors import Action, LogCorrupt
from keptlog.log.topic_partition import MAX_PARTITIONS
from keptlog.log.words.units import LONG_MAX
from keptlog.table.metadata.format import SET_IT_BACK
from keptlog.table.metadata.prefixes import CONFIG_PREFIX, STATE_PREFIX

PARTITIONS = "log.partitions"
LONGEST_SHOWN = 100
_OF_LOG = re.compile(r"log\.p([0-9]{1,9})\.")


def partition_count(topic: str, properties: Mapping[str, str]) -> int:
    """How many partitions a topic has.

    Raises:
        LogCorrupt: the table is none of ours, or another program has changed the number.
    """
    text = properties.get(PARTITIONS)
    if text is None and not any(name.startswith((STATE_PREFIX, CONFIG_PREFIX)) for name in properties):
        error = LogCorrupt(
            f"table {topic!r} has no property {PARTITIONS}: keptlog did not create it; move it elsewhere"
        )
        error.action = Action.FIX_CONFIG  # no file is wrong
        raise error
    if text is None:
        wrong = f"{PARTITIONS} is gone"
    elif not is_long(text) or not 1 <= int(text) <= MAX_PARTITIONS:
        # Each look goes through all of them: a billion would take the other topics with it.
        wrong = f"{PARTITIONS}={text[:LONGEST_SHOWN]!r} is no number of partitions (1 to {MAX_PARTITIONS})"
    else:
        count = int(text)
        beyond = next((name for name in properties if _is_beyond(name, count)), None)
        if beyond is None:
            return count
        wrong = f"{PARTITIONS}={text} is too low, for there is {beyond}"
    raise LogCorrupt(f"topic {topic}: property {wrong}; {SET_IT_BACK}").of_property()


def remembered_logs(properties: Mapping[str, str]) -> set[int]:
    """The numbers of the logs of which a table remembers something, whatever it says of how many there are."""
    return {int(found[1]) for found in map(_OF_LOG.match, properties) if found}


def is_long(text: str) -> bool:
    """Whether it is a number that Kafka and Iceberg can have as an offset or an id."""
    return text.isdecimal() and len(text) <= LONGEST_SHOWN and int(text) <= LONG_MAX


def _is_beyond(name: str, count: int) -> bool:
    found = _OF_LOG.match(name)
    return found is not None and int(found[1]) >= count
