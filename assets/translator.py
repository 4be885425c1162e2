"""How a topic's sections are shown as assets. Who has other conventions gives ``build_defs`` a translator of his own.

    class OurTranslator(DagsterKeptlogTranslator):
        def get_asset_spec(self, props: KeptlogSectionProps) -> dg.AssetSpec:
            return super().get_asset_spec(props).replace_attributes(owners=["team:crm"])

A key is asked for by the topic's name alone, because events come of topics that are in no asset graph yet. So
``get_asset_key`` says what a section is called, and ``get_asset_spec`` all the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import dagster as dg

from keptlog.dagster.assets.asset_topic import AssetTopic


class Section(StrEnum):
    """The assets of a topic."""

    SOURCE = "source"
    """The topic of a broker that it is ingested from."""
    DIRTY = "dirty"
    CLEAN = "clean"


@dataclass(frozen=True)
class KeptlogSectionProps:
    """What there is to know of an asset."""

    topic: AssetTopic
    section: Section
    spec: dg.AssetSpec
    """The asset as ``build_defs`` would show it, its parameters heeded."""


class DagsterKeptlogTranslator:
    """What ``build_defs`` shows when nobody says anything else."""

    def get_asset_key(self, topic: str, section: Section) -> dg.AssetKey:
        """The key of a section; ``key_prefix`` of ``build_defs`` goes before it."""
        return dg.AssetKey([topic, section.value])

    def get_asset_spec(self, props: KeptlogSectionProps) -> dg.AssetSpec:
        """The asset of a section: group, owners, tags, description, metadata … Key, partitions and inputs stay."""
        return props.spec


AS_DELIVERED = DagsterKeptlogTranslator()
"""One for all mounts without a translator of their own, so that mounts that are made alike are equal."""
