"""What is cut into tasks, and what a task does, whoever runs it."""
