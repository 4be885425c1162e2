"""The rules of the log, pure: no clock, no storage, no table, no Spark.

    what there is           ``record``, ``topic_partition``, ``segment``, ``segment_path``, ``source``; what governs
                            it: ``setting``, ``config``, ``broker``, ``declared``
    which log is due        ``roll``, ``active``, ``sections``, ``assessment``, ``uncleanable``
    what a clean does       ``verdict``, ``strategy`` (which record is the latest), ``offset_map`` (where a pass ends),
                            ``watermark``, ``groups``; and ``clean``, all of them together in memory
    what is done to a log   ``steps``, ``plan``, ``result``; ``retention``, which knows no keys; ``drop``,
                            ``truncations``, ``lost_deletions``
    who else has a say      ``holds`` (registered readers), ``holder`` (what holds old bytes), ``run_id``
    erasures                ``erasure``, ``erasure_deadline``, ``erasure_schedule``, ``open_erasures``, ``search``
    what is told            ``explain``, ``history``, ``standing``, ``topic_standing``, ``health``; to Prometheus:
                            ``metrics``, ``gauges``, ``exposition``; by notify: ``conditions``; by doctor: ``problem``,
                            ``examination``, ``stored_files``
    words                   ``counted``, ``units``, ``iso_time``, ``named``, ``contradiction``, ``no_text``,
                            ``unknown_topic``
    what comes from outside ``given``, ``given_time``, ``past``, ``plain_number``, ``partitioner``, ``properties``

``reference`` tells the same in the plainest way and is what all of it is tested against.
"""
