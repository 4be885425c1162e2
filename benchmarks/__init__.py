"""What a clean costs, beside everything else that could do it, and beside the least that its bytes cost.

    cases.py          the table: which log, who cleans it, which goals
    run.py            generates, lets the contenders take turns, checks every result
    generated_log.py  the logs, and what is to be left of them
    digest.py         whether that is what was left
    peers/            the contenders
    workers.py        a process for each, in which it is measured (processes.py)
    figures.py        medians, ratios, goals
    report.py         JSON, table, RESULTS.md (machine.py: measured on what)

Apart from these, ``kafka_log.py`` measures the reading of Kafka's log directories.
"""
