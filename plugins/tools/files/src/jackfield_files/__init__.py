"""Tools that read, write, edit, list and search the files of a run's workspace."""
