"""Changes a topic's settings; all of them or, if one is refused, none.

What is valid hangs on the other settings: the minimum lag must not be above the maximum, a strategy by header needs the
header's name. So the configuration is checked as it will be once the change has landed:

    ours      look: max 10     min 7 is valid                      commit: refused, look again: min 7 is above 5
    theirs                          look: max 10     max 5 lands

Properties alone are last-writer-wins in Iceberg, so the commit adds an empty snapshot: it lands on exactly what it was
checked on (ADR 10). A clean or retention that was planned by the old settings loses its race by that too, and looks
again (ADR 13).

What is set is the topic's own from then on. What is unset is the broker's again; if it decides over deletion, its value
of now is stored, so that it is never left to the next machine (ADR 30).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.table import Table

from keptlog.errors import InvalidConfig
from keptlog.log.config import DECIDING, TopicConfig, known_settings, settled
from keptlog.log.given.given import texts
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.topics import stored_properties
from keptlog.table.metadata.change import OPERATION, RUN_ID, SAME_AGAIN, Change
from keptlog.table.metadata.lineage import COMMIT_ID
from keptlog.table.metadata.logs import known_config, stored_config
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.prefixes import CONFIG_PREFIX, DEFAULT_PREFIX


@dataclass(frozen=True)
class Alteration:
    """A change of the settings of one topic, on its way to be committed."""

    topic: str
    to_set: Mapping[str, str]
    unset: Sequence[str]
    run_id: str

    def __post_init__(self) -> None:
        """Raises InvalidConfig if ``to_set`` has no values by name, or ``unset`` is no list of names.

        An iterator would be empty once it was checked.
        """
        if not isinstance(self.to_set, Mapping):
            raise InvalidConfig(f"the settings: of type {type(self.to_set).__name__}; give a dict, each by its name")
        object.__setattr__(self, "unset", texts(self.unset, "the settings to unset"))

    def commit(self, committer: Committer, broker_settings: Mapping[str, str]) -> Table | None:
        """Check and commit; nothing to commit if all of it is in force.

        Returns:
            The table with it; null if it got no answer, and was found to have landed.

        Raises:
            InvalidConfig: the configuration would not be valid.
            StalePlan, CommitStateUnknown: the commit lost every race, or got no answer.
        """
        tables: list[Table] = []

        def prepare(table: Table) -> Land | None:
            tables.append(table)
            wanted = self.properties(table.properties, broker_settings)
            change = alteration_of(table, wanted, self.run_id)
            return change.written(table) if change else None

        # What is not set can't be unset, so the same command would be refused if this one landed.
        remedy = f"keptlog topic describe {self.topic} says what is set" if self.unset else SAME_AGAIN
        found = committer.commit(Change(self.topic, commit_id=self.run_id, remedy=remedy), prepare)
        return None if found else tables[-1]

    def properties(self, there: Mapping[str, str], broker_settings: Mapping[str, str]) -> dict[str, str | None]:
        """The properties that it gives to a table with those that are ``there``; null for those that go.

        Raises:
            InvalidConfig: the configuration would not be valid.
        """
        own = altered(known_config(self.topic, there), self.to_set, self.unset)
        stored = known_settings(stored_config(there)) | self._kept_again(own, broker_settings)
        stored = {name: value for name, value in stored.items() if name not in own}
        TopicConfig.of(own, broker_settings, stored)
        wanted = {CONFIG_PREFIX + name: value for name, value in self.to_set.items()} | stored_properties(stored)
        changed = [prefix + name for name in [*self.to_set, *self.unset] for prefix in (CONFIG_PREFIX, DEFAULT_PREFIX)]
        return dict.fromkeys(changed) | wanted

    def _kept_again(self, own: Mapping[str, str], broker_settings: Mapping[str, str]) -> dict[str, str]:
        """What a topic that no longer sets something keeps of the broker settings from now on, as they are now."""
        changed = {*self.unset, *self.to_set}
        if "compaction.strategy.header" in self.unset:
            changed.add("compaction.strategy")
        names = [name for name in DECIDING if name in changed]
        return settled(own, broker_settings, names) if names else {}


def alteration_of(table: Table, wanted: Mapping[str, str | None], run_id: str) -> FileChange | None:
    """What gives a table these properties, without those that are null; null if it has them."""
    gone = [name for name, value in wanted.items() if value is None and name in table.properties]
    to_set = {name: value for name, value in wanted.items() if value is not None}
    if not gone and all(table.properties.get(name) == value for name, value in to_set.items()):
        return None
    summary = {RUN_ID: run_id, COMMIT_ID: run_id, OPERATION: "alter"}
    return FileChange(summary, to_set, removed_properties=gone)


def altered(current: Mapping[str, str], to_set: Mapping[str, str], unset: Sequence[str]) -> dict[str, str]:
    """A topic's configuration after an alteration.

    Raises:
        InvalidConfig: a name is both set and unset, or is to be unset and was not set.
    """
    for name in unset:
        if name in to_set:
            raise InvalidConfig(f"{name} is both set and unset: choose one")
        if name not in current:
            raise InvalidConfig(f"{name} can't be unset: the topic does not set it")
    return {name: value for name, value in current.items() if name not in unset} | dict(to_set)
