"""What keptlog costs, measured against the least that the same bytes could cost."""
