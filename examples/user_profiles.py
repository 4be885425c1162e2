"""Makes up a day of a user-profile topic, and knows what a reader of it must find.

    user-000017   {"name": "Ada Ito", "country": "CH", "plan": "free", …}      03:12:40
    user-000017   {"name": "Ada Ito", "country": "CH", "plan": "pro", …}       03:58:02
    user-000017   null                                                         04:00:11    the user is gone

The people are fiction. Same seed, same records. Few users change often and most hardly ever, about one record in twenty
deletes, and some come back. Clocks of producers are not quite in step, so timestamps go backwards now and then; and
some records have headers, with names twice and values of null among them.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from keptlog.log.given.partitioner import partition_for_key
from keptlog.log.record import Header, NewRecord, Record

_MIDNIGHT_MS = 1_748_822_400_000
"""2025-06-02."""
_DAY_MS = 86_400_000
_OUT_OF_STEP_MS = 60_000
_RECORDS_PER_USER = 8
_FIRST_NAMES = ("Ada", "Alan", "Barbara", "Edsger", "Grace", "Jim", "Leslie", "Margaret", "Niklaus", "Ólafur", "雪")
_LAST_NAMES = ("Bauer", "Chen", "Dubois", "Ferrari", "Ito", "Keller", "Moreno", "Nowak", "O'Neill", "Şahin")
_COUNTRIES = ("AT", "BR", "CH", "DE", "ES", "FR", "IN", "IT", "JP", "KE", "PL", "TR", "US")
_PLANS = ("free", "plus", "pro", "team")

Profile = dict[str, str | int]


def user_profiles(records: int, partitions: int, seed: int = 0) -> Iterator[NewRecord]:
    """The day's records in the order in which they are produced, each in the partition that Kafka's clients choose."""
    dice = random.Random(seed)
    users = max(records // _RECORDS_PER_USER, 1)
    profiles: dict[int, Profile] = {}
    for number in range(records):
        user = int(users * dice.random() ** 3)
        key = b"user-%06d" % user
        value = None
        if user in profiles and dice.random() < 0.06:
            del profiles[user]
        else:
            profiles[user] = _changed(profiles.get(user), user, dice)
            value = json.dumps(profiles[user], ensure_ascii=False).encode()
        out_of_step_ms = dice.randrange(-_OUT_OF_STEP_MS, _OUT_OF_STEP_MS)
        timestamp_ms = _MIDNIGHT_MS + number * _DAY_MS // records + out_of_step_ms
        yield NewRecord(key, value, timestamp_ms, partition_for_key(key, partitions), _headers(dice))


@dataclass
class Produced:
    """What a topic that nobody has cleaned must tell, once these records were produced to it.

    A digest covers offset, key, value, timestamp and headers of all records of a partition, in their order.
    """

    partitions: int
    latest: dict[bytes | None, bytes] = field(default_factory=dict)
    """The latest value of every key that is not deleted."""
    tombstones: int = 0
    ends: list[int] = field(init=False)
    """The offset that the next record of each partition gets."""

    def __post_init__(self) -> None:
        self.ends = [0] * self.partitions
        self.begin_wave()

    def begin_wave(self) -> None:
        """Digests cover what comes from now on."""
        self.begins = list(self.ends)
        self._digests = [hashlib.sha256() for _ in range(self.partitions)]

    def add(self, records: Iterable[NewRecord]) -> Iterator[NewRecord]:
        """Note records on their way to the broker."""
        for new in records:
            partition = new.partition or 0
            offset = self.ends[partition]
            self.ends[partition] += 1
            record = Record(offset, new.key, new.value, new.timestamp_ms, headers=new.headers)
            self._digests[partition].update(_line(record))
            if new.value is None:
                self.tombstones += 1
                self.latest.pop(new.key, None)
            else:
                self.latest[new.key] = new.value
            yield new

    def digests(self) -> list[str]:
        """Of the wave, by partition."""
        return [digest.hexdigest() for digest in self._digests]


def digest_of(records: Iterable[Record]) -> str:
    """What a reader found of one partition, as ``Produced.digests`` has it."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(_line(record))
    return digest.hexdigest()


def joint(digests: Sequence[str]) -> str:
    """One short digest for all partitions, for people to compare."""
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


def _line(record: Record) -> bytes:
    """All that must not change; repr tells null from empty, and one field from the next."""
    fields = (record.offset, record.key, record.value, record.timestamp_ms, record.timestamp_type, record.headers)
    return repr(fields).encode()


def _changed(profile: Profile | None, user: int, dice: random.Random) -> Profile:
    if profile is None:
        name = f"{dice.choice(_FIRST_NAMES)} {dice.choice(_LAST_NAMES)}"
        country = dice.choice(_COUNTRIES)
        return {"name": name, "country": country, "plan": "free", "email": f"{user}@example.org", "visits": 1}
    visits = int(profile["visits"]) + 1
    changes: tuple[Profile, ...] = ({}, {"plan": dice.choice(_PLANS)}, {"country": dice.choice(_COUNTRIES)})
    change = dice.choices(changes, weights=(2, 1, 1))[0]
    return {**profile, **change, "visits": visits}


def _headers(dice: random.Random) -> tuple[Header, ...]:
    if dice.random() > 0.2:
        return ()
    headers: list[Header] = [("source", dice.choice((b"web", b"app", b"")))]
    if dice.random() < 0.5:
        headers += [("trace", dice.randbytes(8)), ("trace", None)]
    return tuple(headers)
