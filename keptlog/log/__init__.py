"""The rules of the log, pure: no clock, no storage, no table, no Spark.

    what there is           ``record``, ``topic_partition``, ``segment``, ``segment_path``, ``source``,
                            ``not_shown``, ``broker_addresses``; what governs it: ``setting``, ``config``, ``broker``,
                            ``declared``
    which log is due        ``roll``, ``active``, ``sections``, ``assessment``, ``uncleanable``
    what a clean does       ``verdict``, ``strategy`` (which record is the latest), ``offset_map`` (where a pass ends),
                            ``watermark``, ``groups``; and ``clean``, all of them together in memory
    what is done to a log   ``steps``, ``plan``, ``result``; ``retention``, which knows no keys; ``drop``,
                            ``truncations``, ``lost_deletions``, ``refilled``, ``cut_off``, ``stopped_ingest``
    who else has a say      ``holds`` (registered readers), ``holder`` (what holds old bytes), ``run_id``
    where a key lies        ``search``

``reference`` tells the same in the plainest way and is what all of it is tested against. Around these lie four folders,
and imports only go down:

    told         what people, programs, Prometheus and doctor are told of logs
    erasures     what is asked to be gone, and by when it must be
    (here)       the rules above
    given        what comes from outside, and may be anything
    words        how numbers, times and names are written
"""
