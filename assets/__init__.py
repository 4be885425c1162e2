"""The topics as Dagster shows them: per topic a dirty section that is observed and a clean section that is made.

What is done to a log stands in the library; here it gets its names, its numbers and its checks.

    whose and what      ``mount``, ``names``, ``translator``, ``asset_topic``
    assets              ``sections``, ``health``, ``erasures``; their checks: ``checks``, ``last_results``,
                        ``shown_deadline``; what no topic has any more: ``lost_topics``
    what a run tells    ``report``, ``results``, ``ingest_report``, ``attempts``, ``outage``, ``siblings``
    what is shown       ``numbers``, ``outlook``, ``table_metadata``, ``markdown``, ``long_tags``
"""
