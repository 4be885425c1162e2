"""Reads topics of running Kafka brokers, through librdkafka."""
