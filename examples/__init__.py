"""Real changelogs to try keptlog on. Nothing in keptlog needs this package."""
