"""The telling of a topic of user profiles, which proves that nothing of them was changed on the way.

Before a clean a digest over the offset, key, value, timestamp and headers of every record is the same on both sides;
after it, the latest value of every key is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from examples.telling import Telling, say
from examples.user_profiles import Produced, digest_of, joint

PARTITIONS = 3


@dataclass
class ProfilesTelling(Telling):
    """The telling of what was made up and sent."""

    produced: Produced = field(default_factory=lambda: Produced(PARTITIONS))

    def is_as_produced(self) -> bool:
        """Whether the records of the last wave are here, each at its offset, and nothing of them was changed."""
        found = [
            digest_of(record for _, record in self.home.store.read(self.topic, partition, first))
            for partition, first in enumerate(self.produced.begins)
        ]
        count = sum(self.produced.ends) - sum(self.produced.begins)
        say(f"  {count:,} records by offset, key, value, timestamp and headers:")
        say(f"    produced {joint(self.produced.digests())}, here {joint(found)}")
        same = found == self.produced.digests()
        say("    the same" if same else "    NOT THE SAME")
        return same

    def has_latest_values(self) -> bool:
        """Whether the topic's latest values are those that were produced last."""
        truth = self.produced.latest
        latest = {record.key: record.value for _, record in self.home.store.read(self.topic, latest=True)}
        different = {key for key, _ in latest.items() ^ truth.items()}
        say(f"  produced: {len(truth):,} keys that are not deleted; keptlog read --latest: {len(latest):,} keys")
        if different:
            say(f"  {len(different):,} keys differ, {min(different, key=repr)!r} among them")
        return not different
