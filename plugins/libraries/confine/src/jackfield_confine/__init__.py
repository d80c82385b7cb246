"""Keep a program from others: limits, namespaces, Landlock, and a guard that ends all it started. Mostly on Linux."""
