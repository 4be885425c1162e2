"""When logs are cleaned, and what together: jobs, sensors, schedules, and the definitions that Dagster loads."""
