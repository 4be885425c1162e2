"""The pass that brings in records that have offsets already: those of a broker, of its log directory, or of files.

``ingest_pass`` is the pass, ``source`` what it asks of a source, ``plans`` and ``result`` what it has before and after,
``reconcile`` how it finds what is gone there, ``insertion`` how that gets its tombstones, ``stops`` what it leaves for
those who read nothing. Those look with ``lag``, of each log with ``log_lag``, and ``lag_news`` says what of it is new.
Each kind of source is one module:

    ``kafka_brokers``   topics of running brokers
    ``kafka_logs``      a broker's log directory, or a backup of it
    ``offset_files``    files whose rows have offsets; no ``Source``, its head says why

A new live source is one module beside these. It has a class with the five methods of ``source.Source``, and parts that
know how to read an offset range (``engine.ingest_tasks.Part``). Positions, plans, tasks, segments, commits, retries and
what is told of all this are the pass's, and the same for all. Beside the module it needs no more than its wiring: a
command that hands it to ``Ingest.plan`` and ``Ingest.carry_out`` as ``cli/ingest.py`` does, and for Dagster an op that
hands its plans to ``assets.ingest_report.run_ingest``. The smallest example is ``tests/ingest/memory.py``.
"""
