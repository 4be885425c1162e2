"""All that is Spark's: a session, and the tasks of ``keptlog.engine`` as Spark jobs.

    settings.py        every Spark setting, with its reason
    session.py         the start of a context, or of a session
    master.py          the address at which Spark runs, looked at before Java is started
    launch.py          the settings on their way to Java, past every command line; and Java started ahead
    java.py            Java, from its start until it can be asked
    archive.py         a class data archive, from which Java starts with half the work
    archiving.py       how it is made
    nameless.py        Java of a user whom this machine has no name for
    driver.py          a Spark in hand: a context, a session on it, or a Connect server's session
    bounded.py         the engine on it, bounded as the broker settings say
    prospect.py        whether a Spark could be had, for doctor
    server.py          a Spark that stays warm: a Connect server with the same settings
    connect.py         a Connect server, seen from its client
    packed.py          keptlog's own code as one file, for workers that don't have it
    readiness.py       before the first task: the code goes along, and what workers have is compared
    waiting.py         a job that nobody works on: said so, and given up
    failures.py        what Spark tells in sixty lines, in one
    jobs.py            keeps the protocol ``keptlog.engine.jobs.Jobs``: task numbers in, lines of JSON out
    frames.py          records as a frame, for people who work with Spark themselves
    shuffle.py         the one query in which rows are keys: the shuffle of keys beyond memory
    worker.py          what is around a task in a Python worker: its errors, its memory
    worker_daemon.py   the process from which local workers are forked, with their imports done
    worker_imports.py  what these are, and from where
    kept_memory.py     what a worker keeps of the memory that Arrow has freed

Spark distributes; what it distributes is in ``keptlog.engine``, and runs without it. A task opens its files itself, so
no record is a Spark row, but for key, offset and version in ``shuffle.py``. Values never are.
"""
