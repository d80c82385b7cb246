"""Judge what is installed: whether it works, what it may do, and why."""
