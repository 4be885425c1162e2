"""The engine: Spark distributes, Arrow kernels work inside its tasks.

    engine.py       steps in, staged outcomes back; the only thing that others call
    tasks.py        how the work is cut: descriptions that travel to the executors, and run there
    offset_map.py   key -> latest offset, of the dirty section
    judge.py        which records of a run of segments survive
    rewrite.py      the survivors, into new segments
    session.py      every Spark setting, with its reason

Keys and offsets are read by Arrow from the files and never enter a Spark row; values only pass from the file that is
read to the file that is written. Spark sees task numbers go in and a line of JSON come out.
"""
