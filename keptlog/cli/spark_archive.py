"""``keptlog spark-archive``: a class data archive, with which Spark's Java starts with half the work."""

from __future__ import annotations

import os
import signal

import click

from keptlog.cli.output import json_option, print_json
from keptlog.interrupted import interrupt
from keptlog.log.words.units import size


@click.command(short_help="Let Spark start with less work.")
@click.option("--remove", is_flag=True, help="Remove all archives of yours instead.")
@json_option
def spark_archive(*, remove: bool, as_json: bool) -> None:
    """Make an archive of the classes that Spark's Java loads, from which each later start takes them.

    It saves a small clean two to three CPU seconds, wherever keptlog starts Spark on this machine. It takes 70 MB
    in XDG_CACHE_HOME, or ~/.cache, and some twenty seconds to make. It fits this Java and this PySpark. After an
    update it is not used, and nothing else changes, until you make a new one. It is not used either where you have
    set one of Java's own options for this (-XX:SharedArchiveFile, -Xshare). There is nothing of any topic in it.
    """
    # Spark's library comes with it.
    from keptlog.spark.archiving import make_archive, remove_archives  # noqa: PLC0415

    if remove:
        removed = [str(path) for path in remove_archives(os.environ)]
        if as_json:
            print_json({"archive": None, "bytes": None, "java": None, "spark": None, "removed": removed})
        else:
            click.echo("\n".join(f"removed {path}" for path in removed) or "there is no archive")
        return
    from keptlog.cli.warm_up import warm_up  # noqa: PLC0415  # it imports what a clean imports

    signal.signal(signal.SIGTERM, interrupt)
    made = make_archive(warm_up, os.environ)
    if as_json:
        row = {"java": made.pair.java, "spark": made.pair.spark, "removed": []}
        print_json({"archive": str(made.path), "bytes": made.size_bytes, **row})
        return
    click.echo(f"{made.path}: {size(made.size_bytes)}, of Java {made.pair.java} and Spark {made.pair.spark}")
    click.echo("Every local Spark that keptlog starts takes it. To get rid of it: keptlog spark-archive --remove")
