"""The engine: Spark distributes, Arrow kernels work inside its tasks.

    engine.py       steps in, staged outcomes back; the only thing that others call
    jobs.py         task numbers in, lines of JSON out: how Spark runs tasks
    tasks.py        how the work is cut: descriptions that travel to the executors, and run there
    map_tasks.py    those that map the keys of a large log
    run.py          neighbouring segments, judged and rewritten in one task
    session.py      every Spark setting, with its reason

What runs inside of the tasks, on Arrow tables:

    offset_map.py   key -> latest offset, of the dirty section
    watermarks.py   what deleted keys leave behind
    judge.py        which records of a run of segments survive
    rewrite.py      the survivors, into new segments
    throttle.py     not too fast

Keys and offsets are read by Arrow from the files and never enter a Spark row; values only pass from the file that is
read to the file that is written. One exception: keys beyond memory go through a Spark shuffle (``shuffle.py``, the
query; ``key_shuffle.py``, what its tasks do; ``judged_offsets.py``, what comes out). Values never do.
"""
