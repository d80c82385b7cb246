"""Change what is installed: install, remove, lock and restore packages."""
