"""``keptlog spark-pack``: keptlog's own code as an archive for Spark's workers."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from keptlog.cli.output import json_option, print_json
from keptlog.whole_file import something_random


@click.command(short_help="Write the code that Spark's workers need.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file; by default a new one here, named by its content.",
)
@json_option
def spark_pack(output: Path | None, *, as_json: bool) -> None:
    """Write keptlog's code as an archive that Spark's workers import it from.

    keptlog sends its code along by itself, to every cluster and Connect server. To have it there beforehand, name this
    file: spark.submit.pyFiles=FILE on a standalone cluster, YARN or Kubernetes, or addArtifacts(FILE, pyfile=True) in a
    Connect session. The same code gives the same file, to the byte.

    The packages that are printed must be in the workers' own Python.
    """
    from keptlog.sinks.new_file import new_file  # noqa: PLC0415
    from keptlog.spark.packed import archive_name, write_archive  # noqa: PLC0415
    from keptlog.spark.readiness import MODULES, requirement_of  # noqa: PLC0415  # Spark's library comes with it

    path = output or Path(archive_name())
    with new_file(path, something_random(), overwrite=True) as sink:
        write_archive(sink)
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    always = [requirement_of(module) for module in MODULES]
    remote, kafka = requirement_of("pyiceberg"), [requirement_of("confluent_kafka"), requirement_of("google_crc32c")]
    if as_json:
        print_json(
            {"archive": str(path), "python": python, "always": always, "object_storage": [remote], "kafka": kafka}
        )
        return
    click.echo(f"{path}: keptlog's code for Spark's workers. In their own Python, {python}, must be:")
    click.echo(f"  always                 {' '.join(always)}")
    click.echo(f"  on object storage      {remote}")
    click.echo(f"  to ingest from Kafka   {' '.join(kafka)}")
