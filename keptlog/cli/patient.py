"""The ways in which ``keptlog doctor`` looks at a home: what its checks ask is opened here."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from keptlog.cli.home_look import Brokers
from keptlog.errors import InvalidConfig
from keptlog.home import client_settings, new_id, open_home
from keptlog.log.told.conditions import Sighting, Thresholds
from keptlog.notify.settings import PREFIX, notify_settings, notify_thresholds
from keptlog.passes.doctor.home_patient import Patient
from keptlog.passes.doctor.proof_doctor import Proofs
from keptlog.passes.observer import Overview
from keptlog.passes.watch import home_sighting, tick_evidence
from keptlog.progress import Progress
from keptlog.receipts.key_files import require_signing_key
from keptlog.settings import BROKER_FILE, SPARK_FILE, SPARK_MASTER, broker_settings, spark_master, spark_settings
from keptlog.storage.erasure_secret import known_hasher
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.configuration import catalog_settings

if TYPE_CHECKING:
    from keptlog.passes.doctor.catalog_doctor import CatalogDoctor, Certificate


def catalog_doctor(home: Path, progress: Progress) -> CatalogDoctor:
    """Who probes the configured catalog, or the home's."""
    from keptlog.passes.doctor.catalog_doctor import CatalogDoctor  # noqa: PLC0415  # few homes have a catalog to be probed

    return CatalogDoctor(lambda: open_catalog(home), new_id, time.sleep, progress)


def patient(home: Path, now_ms: int, progress: Progress, *, is_probed: bool) -> Patient:
    """A home to be looked at; nothing of it is opened before a check asks for it."""
    return Patient(
        home=home,
        now_ms=now_ms,
        settings={
            f"{home / BROKER_FILE}, KEPTLOG_BROKER_*": lambda: broker_settings(home),
            f"{home / SPARK_FILE}": lambda: spark_settings(home),
            SPARK_MASTER: spark_master,
            f"{home / 'kafka.properties'}, KEPTLOG_KAFKA_*": lambda: client_settings(home),
            f"{PREFIX}*": lambda: notify_settings(os.environ),
            ".pyiceberg.yaml, PYICEBERG_*": catalog_settings,
        },
        open_store=lambda: open_home(home).store,
        sighting=partial(_sighting, home),
        try_spark=lambda: _try_spark(home),
        proofs=Proofs(
            require_signing_key=lambda: require_signing_key(home, os.environ),
            receipts=lambda: open_home(home).receipts,
            known_hasher=lambda: known_hasher(home, os.environ),
        ),
        probe=partial(_certificate, home, now_ms, progress) if is_probed and _is_configured() else None,
    )


def _certificate(home: Path, now_ms: int, progress: Progress) -> Certificate:
    return catalog_doctor(home, progress).examine(now_ms)


def _sighting(home: Path, seen: Overview) -> Sighting:
    try:
        limits = notify_thresholds(os.environ)
    except InvalidConfig:  # which is told of the settings
        limits = Thresholds()
    sighting = home_sighting(home, seen, limits, lambda: Brokers(home).ask(seen.now_ms)[1])
    return sighting.with_evidence(tick_evidence(home, seen.now_ms, limits))


def _try_spark(home: Path) -> None:
    from keptlog.spark.prospect import require_spark  # noqa: PLC0415  # it imports PySpark

    require_spark(spark_master(), spark_settings(home))


def _is_configured() -> bool:
    try:
        return catalog_settings() is not None
    except InvalidConfig:  # which is told of the settings
        return False
