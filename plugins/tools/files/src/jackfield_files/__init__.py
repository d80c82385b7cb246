"""Tools that read, write, edit, list and search files in a run's workspace."""
