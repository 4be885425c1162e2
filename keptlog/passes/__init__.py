"""What is done to topics from end to end: observe, plan, work, commit."""
