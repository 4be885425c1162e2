"""How Kafka brokers are reached: the client's settings, with their secrets kept, and its errors in words."""
