"""What is done to record batches: Arrow tables in, Arrow tables out, in whatever process they are run.

No Spark, no Iceberg, no catalog: a contract of ``lint-imports``.
"""
