"""Sandbox building blocks: limits, namespaces, Landlock, and a guard that ends every process a program started."""
