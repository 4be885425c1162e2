"""How Kafka brokers are reached: settings whose secrets are kept, errors in words, and offsets that were told.

``one_cluster`` refuses addresses of two clusters; ``leaders`` asks who leads, and leaders where logs begin and end.
"""
