"""The pass that brings in records that have offsets already: those of a broker, of its log directory, or of files."""
