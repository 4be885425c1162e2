"""Topics as code: the file in which they are declared, read with its line numbers, and written."""
