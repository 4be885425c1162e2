"""What a clean costs, beside everything else that could do it, and beside the least that its bytes cost.

    cases.py          the table: which log, who cleans it, which goals
    run.py            generates, lets the contenders take turns, checks every result
    generated_log.py  the logs, and what is to be left of them
    digest.py         whether that is what was left
    peers/            the contenders
    workers.py        a process for each, in which it is measured (processes.py)
    figures.py        medians, ratios, goals
    report.py         JSON, table, RESULTS.md (machine.py: measured on what)

Each of these measures something else; what, and how it is started, says its head (``*_text.py``: its text on the page):

    growth.py         a clean, as its work grows
    cold.py           a small clean and quick commands, second by second
    around.py         what is not the engine: ticks, swaps, appends
    ticks.py          sensors in homes of many topics, by catalog
    status.py         keptlog status in a home of very many logs
    loading.py        a code location of very many topics
    scale.py          what a segment and a topic-partition cost the driver
    lake.py           appends and small cleans on a bucket
    ingest.py         records of a Kafka broker
    kafka_log.py      Kafka's log directories
    key_search.py     a search for erased keys
"""
