"""The jobs of a home, made together for its mount."""

from __future__ import annotations

from dataclasses import dataclass, fields

import dagster as dg

from keptlog.dagster.assets.mount import Mount
from keptlog.dagster.orchestration.clean_job import clean_job
from keptlog.dagster.orchestration.erase_job import erase_job, verify_erasures_job
from keptlog.dagster.orchestration.ingest_job import ingest_job
from keptlog.dagster.orchestration.purge_job import purge_job
from keptlog.dagster.orchestration.retention_job import retention_job
from keptlog.dagster.orchestration.verify_job import verify_job


@dataclass(frozen=True)
class HomeJobs:
    """What sensors and schedules ask for, and people from the launchpad."""

    clean_logs: dg.JobDefinition
    retention: dg.JobDefinition
    purge: dg.JobDefinition
    verify: dg.JobDefinition
    ingest_kafka: dg.JobDefinition
    erase: dg.JobDefinition
    verify_erasures: dg.JobDefinition

    @classmethod
    def of(cls, mount: Mount) -> HomeJobs:
        """Those of a home."""
        return cls(
            clean_job(mount),
            retention_job(mount),
            purge_job(mount),
            verify_job(mount),
            ingest_job(mount),
            erase_job(mount),
            verify_erasures_job(mount),
        )

    @property
    def all(self) -> list[dg.JobDefinition]:
        return [getattr(self, each.name) for each in fields(self)]
