"""What sandboxes are made of: their contract, limits, namespaces, Landlock, and a guard that ends all it started."""
