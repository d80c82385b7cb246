"""Reports what answers cost, from dated price tables, and stops at a limit."""
