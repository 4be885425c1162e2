"""All that is Spark's: a session, and the tasks of ``keptlog.engine`` as Spark jobs.

    settings.py        every Spark setting, with its reason
    session.py         the start of a context, or of a session
    driver.py          a Spark in hand: a context, a session on it, or a Connect server's session
    server.py          a Spark that stays warm: a Connect server with the same settings
    connect.py         a Connect server, seen from its client
    packed.py          keptlog's own code as one file, for workers that don't have it
    readiness.py       before the first task: the code goes along, and what workers have is compared
    launch.py          its settings on their way to Java, past every command line
    waiting.py         a job that nobody works on: said so, and given up
    failures.py        what Spark tells in sixty lines, in one
    jobs.py            keeps the protocol ``keptlog.engine.jobs.Jobs``: task numbers in, lines of JSON out
    frames.py          records as a frame, for people who work with Spark themselves
    shuffle.py         the one query in which rows are keys: the shuffle of keys beyond memory
    worker.py          what is around a task in a Python worker: its errors, its memory
    worker_daemon.py   the process from which local workers are forked, with their imports done
    worker_imports.py  what these are, and from where

Spark distributes; what it distributes is in ``keptlog.engine``, and runs without it. A task opens its files itself, so
no record is a Spark row, but for key, offset and version in ``shuffle.py``. Values never are.
"""
