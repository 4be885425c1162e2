"""keptlog in Dagster: ``orchestration`` says when, ``assets`` what is shown, ``resources`` what is opened.

What a project imports has its name here: ``build_defs``, the component, the translator, the resources. It is imported
when it is asked for, because a module below here is not to import all the others first.

In the repository the three are folders at its root, and links here lead to them; an installed package has them here for
real. So each has one name everywhere, ``keptlog.dagster.assets``, and none is in the way of a project's own ``assets``
(ADR 25). Everything here needs ``pip install 'keptlog[dagster]'``; nothing outside of it knows Dagster.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keptlog.dagster.assets.translator import DagsterKeptlogTranslator, KeptlogSectionProps, Section
    from keptlog.dagster.orchestration.component import KeptlogComponent
    from keptlog.dagster.orchestration.definitions import build_defs
    from keptlog.dagster.resources.clock import ClockResource
    from keptlog.dagster.resources.kafka import KafkaResource
    from keptlog.dagster.resources.log_store import LogStoreResource
    from keptlog.dagster.resources.spark import SparkResource

__all__ = [
    "ClockResource",
    "DagsterKeptlogTranslator",
    "KafkaResource",
    "KeptlogComponent",
    "KeptlogSectionProps",
    "LogStoreResource",
    "Section",
    "SparkResource",
    "build_defs",
]

_MODULES = {
    "ClockResource": "keptlog.dagster.resources.clock",
    "DagsterKeptlogTranslator": "keptlog.dagster.assets.translator",
    "KafkaResource": "keptlog.dagster.resources.kafka",
    "KeptlogComponent": "keptlog.dagster.orchestration.component",
    "KeptlogSectionProps": "keptlog.dagster.assets.translator",
    "LogStoreResource": "keptlog.dagster.resources.log_store",
    "Section": "keptlog.dagster.assets.translator",
    "SparkResource": "keptlog.dagster.resources.spark",
    "build_defs": "keptlog.dagster.orchestration.definitions",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
