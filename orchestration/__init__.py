"""When logs are cleaned, and what together: jobs, sensors, schedules, and the definitions that Dagster loads.

what is loaded       ``definitions``, ``component``; which topics there are: ``loading``, ``seen``, ``state_file``,
                     ``topic_assets``, ``backfills``, ``reload``
jobs                 ``jobs``, ``clean_job``, ``retention_job``, ``purge_job``, ``verify_job``, ``ingest_job``,
                     ``erase_job``
sensors, schedules   ``clean_sensors``, ``retention_sensor``, ``ingest_sensor``, ``erasure_sensor``, ``health_sensor``,
                     ``notify_sensor``, ``topics_sensor``, ``failed_runs``, ``schedules``; how often, and whether they
                     are on: ``automation``, ``asset_sensors``, ``sensor_states``
what is asked for    ``requests``, ``late_first``, ``erasure_requests``, ``erasure_needs``, ``erasure_memory``,
                     ``erasure_looks``, ``erasure_tick``, ``first_looks``
what was told        ``told_sections``, ``told_lags``, ``stored_ticks``, ``still_told``
what runs tell       ``own_runs``, ``in_flight``, ``outages``, ``ingest_failures``, ``untold_cleans``, ``ended_runs``,
                     ``untried_runs``, ``still_failed``
"""
