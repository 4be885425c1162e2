"""keptlog as a component: the same as ``build_defs``, said in a ``defs.yaml``, and found by ``dg``.

    type: keptlog.dagster.KeptlogComponent
    attributes:
      home: "{{ env.CRM_HOME }}"
      topics: ["crm.*"]
      key_prefix: [crm]
      name_prefix: crm
      translation:
        owners: ["team:crm"]
        tags: {domain: "{{ props.topic.name }}"}

``translation`` has what a translator in Python would say, in the words that all of Dagster's components have for it;
``spec`` is the asset as it would be shown without it, ``props`` what is known of it.
"""

# Dagster reads the annotations of components, so they are no texts here.

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import dagster as dg
from dagster.components.utils.translation import TranslatorResolvingInfo
from pydantic import BaseModel, Field

from keptlog.dagster.assets.asset_topic import AssetTopic
from keptlog.dagster.assets.translator import DagsterKeptlogTranslator, KeptlogSectionProps, Section
from keptlog.dagster.orchestration.definitions import MountOptions, build_defs
from keptlog.errors import InvalidConfig
from keptlog.settings import HOME_VARIABLE

Translation: TypeAlias = Callable[[dg.AssetSpec, KeptlogSectionProps], dg.AssetSpec]


@dataclass(frozen=True)
class _Templates:
    """What ``translation`` says, in templates."""

    context: dg.ResolutionContext
    model: Any

    def __call__(self, spec: dg.AssetSpec, props: KeptlogSectionProps) -> dg.AssetSpec:
        info = TranslatorResolvingInfo(
            asset_attributes=self.model, resolution_context=self.context, model_key="translation"
        )
        return info.get_asset_spec(spec, {"props": props, "spec": spec})

    @cached_property
    def of_key(self) -> Translation:
        """What it says of the key alone: the rest may need to know what nobody knows of a bare name."""
        if not isinstance(self.model, BaseModel):
            return self
        said = {name: getattr(self.model, name) for name in self.model.model_fields_set & {"key", "key_prefix"}}
        return replace(self, model=self.model.__class__(**said)) if said else lambda spec, _: spec


def _translation(context: dg.ResolutionContext, model: Any) -> Translation:
    return _Templates(context, model)


def _home(context: dg.ResolutionContext, given: str | None) -> str | None:
    """Raises InvalidConfig if it is named by a variable that is not set: another home would take its place."""
    home = context.resolve_value(given) if given else None
    if given and not home and HOME_VARIABLE not in given:
        raise InvalidConfig(f"home: {given} says nothing: set that variable, or leave home out for {HOME_VARIABLE}")
    return str(home) if home else None


def _described(description: str) -> dg.Resolver:
    resolver: dg.Resolver = dg.Resolver.default(description=description)
    return resolver


class KeptlogScaffoldParams(BaseModel):
    """What ``dg scaffold defs keptlog.dagster.KeptlogComponent NAME`` may be told."""

    home: str = Field(default="{{ env.KEPTLOG_HOME }}", description="The folder of the home.")
    name_prefix: str = Field(default="", description="Goes before all names of jobs, sensors and resources.")


class KeptlogScaffolder(dg.Scaffolder[KeptlogScaffoldParams]):
    """Writes a ``defs.yaml`` that loads as it is."""

    @classmethod
    def get_scaffold_params(cls) -> type[KeptlogScaffoldParams]:
        return KeptlogScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[KeptlogScaffoldParams]) -> None:
        attributes = {name: value for name, value in request.params.model_dump().items() if value}
        dg.scaffold_component(request, attributes)


@dg.scaffold_with(KeptlogScaffolder)
class KeptlogComponent(dg.Component, dg.Model, dg.Resolvable):
    """Topics of a keptlog home: their assets, and the jobs, sensors and schedules that keep them clean."""

    home: Annotated[
        str | None,
        dg.Resolver(
            _home,
            model_field_type=str | None,
            inject_before_resolve=False,
            description="The home's folder, from the project's root on; KEPTLOG_HOME, or ./.keptlog, if it is not "
            "given. If it is given by another variable, that must be set.",
        ),
    ] = None
    topics: Annotated[
        Sequence[str], _described("Patterns of the topics to look after, such as crm.*; all if empty.")
    ] = ()
    key_prefix: Annotated[Sequence[str], _described("Goes before all asset keys.")] = ()
    name_prefix: Annotated[
        str, _described("Goes before the names of jobs, ops, sensors, schedules, resources and the pool.")
    ] = ""
    group_by: Annotated[
        Literal["name", "prefix"],
        _described("A topic's group: by its name, or by what stands before the last dot. A dot is a step down."),
    ] = "name"
    intervals: Annotated[
        Mapping[str, int | str],
        _described("By sensor the seconds between two ticks, by schedule its cron expression; without a prefix."),
    ] = Field(default={})
    sensors_on: Annotated[
        bool | Sequence[str] | None,
        _described("Which sensors and schedules run from the start: all, none, or these, without a prefix."),
    ] = None
    translation: Annotated[
        Translation | None,
        dg.Resolver(
            _translation,
            model_field_type=str | dg.AssetAttributesModel,
            description="What the assets of topics are shown with; spec and props are known in its templates.",
        ),
    ] = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        shown: MountOptions = {
            "topics": self.topics,
            "key_prefix": self.key_prefix,
            "name_prefix": self.name_prefix,
            "group_by": self.group_by,
            "intervals": self.intervals,
        }
        if self.translation:
            shown["translator"] = _Translator(self.translation)
        if self.sensors_on is not None:
            shown["sensors_on"] = self.sensors_on
        home = None if self.home is None else Path(context.project_root) / self.home
        return build_defs(home, **shown)


class _Translator(DagsterKeptlogTranslator):
    """Says what a component's ``translation`` does; of a topic that is in no asset graph yet, it knows the name."""

    def __init__(self, translation: Translation) -> None:
        self._translation = translation
        self._of_key = translation.of_key if isinstance(translation, _Templates) else translation

    def get_asset_key(self, topic: str, section: Section) -> dg.AssetKey:
        spec = dg.AssetSpec(super().get_asset_key(topic, section))
        return self._of_key(spec, KeptlogSectionProps(AssetTopic(topic), section, spec)).key

    def get_asset_spec(self, props: KeptlogSectionProps) -> dg.AssetSpec:
        # What it says of the key was said above.
        return self._translation(props.spec, props).replace_attributes(key=props.spec.key)
