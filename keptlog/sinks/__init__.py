"""Where a log goes out to: files of JSON lines or Parquet, and Kafka brokers. ``keptlog.passes`` feeds them."""
