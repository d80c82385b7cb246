"""The parts of sandboxes: limits, namespaces, Landlock, and a guard that ends all that a program started."""
