"""Every compaction strategy there is, for tests that try them all: a new one is in their dice by itself.

Where versions are in a header it is called ``v``. A test that draws headers draws values that every strategy can read,
or it compares records without a version.
"""

from __future__ import annotations

from keptlog.log.strategy import Strategy, StrategyKind

ALL_STRATEGIES = tuple(Strategy(kind, "v" if kind.needs_header else "") for kind in StrategyKind)
STRATEGIES_WITH_VERSIONS = tuple(strategy for strategy in ALL_STRATEGIES if strategy.has_versions)


def settings_of(strategy: Strategy) -> dict[str, str]:
    """A topic's settings that give it this strategy."""
    header = {"compaction.strategy.header": strategy.header} if strategy.header else {}
    return {"compaction.strategy": str(strategy.kind)} | header
