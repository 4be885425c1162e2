"""What is cut into tasks, and what a task does, whoever runs it.

Read ``docs/engine.md`` first: the whole story, from the simplest log on, with pictures.

    engine.py            steps in, staged outcomes back; the only thing that others call to clean
    jobs.py              the protocol ``Jobs``: who runs tasks, and what a task may count on
    tasks.py             how the work is cut, and what a rewrite task does
    bundles.py           how many things become few tasks of about equal weight
    amount.py            how much a task reads, for those who wait
    legs.py              a step that is too large for one commit, leg after leg
    segment_run.py       neighbouring segments of one step, judged and rewritten together in a task
    stretches.py         small files that a task reads, asked for before it comes to them
    outcome.py           what became of a step, from the results of its segment runs
    rewriting.py         the job that rewrites: good logs go on, of failed ones nothing is left
    latest.py            where a segment run reads which records are the latest
    latest_jobs.py       the jobs that find that out before a large log is rewritten
    map_tasks.py         what their tasks do: map, merge, compare
    shuffle.py           the same for keys beyond memory, described as three stages
    watermark_tasks.py   what segment runs leave of deleted keys, put together
    attempt.py           one try of one task, and the paths that are its own
    ingest_tasks.py      tasks that write what a source holds into segments
    reconcile_tasks.py   tasks that compare a log with all of its source
    search_tasks.py      tasks that look files through for keys
    drop_tasks.py        tasks that take the records of keys out of logs

What the tasks do to records lies in ``keptlog.kernels``; who runs them is ``keptlog.spark.jobs``, and in tests
``tests.in_process``.
"""
