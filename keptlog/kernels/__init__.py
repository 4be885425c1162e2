"""What is done to record batches: Arrow tables in, Arrow tables out, in whatever process they are run.

Read ``docs/engine.md`` first: the whole story, from the simplest log on, with pictures.

    inputs.py           opens the segments of a step, and reads keys and offsets out of them
    offset_map.py       map: key -> latest offset, of the dirty section
    rivals.py           compare: what beats the map after all, where records have versions
    key_shuffle.py      emit, settle, list: the same for keys beyond memory
    judged_offsets.py   what a comparison or a shuffle has found out about records, by offset
    key_ranges.py       which row groups may hold a mapped key
    judge.py            judge: which records of a segment run survive, reading as little as it can
    ways.py             the masks that come of what was read
    rewrite.py          rewrite: the survivors, into new segments
    watermarks.py       what deleted keys leave behind
    key_search.py       search: which wanted keys a file has, whatever file it is
    wanted_keys.py      the records of wanted keys, by their keyed hashes
    drop.py             drop: a segment without the records of wanted keys
    offset_set.py       a set of offsets that records are looked up in
    gone.py             what is said of an input that is not there

Conventions: an offset is an int64. Arrays of offsets rise wherever it says so, and searches rely on it. A mask is a
bool array without nulls, one element a record, in offset order. Positions and rows count from 0 within the table at
hand.

No Spark, no Iceberg, no catalog: a contract of ``lint-imports``.
"""
