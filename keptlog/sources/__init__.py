"""What brings records in. Each source yields ``NewRecord`` in its own order and knows nothing of the table."""
