"""Judge installed plugins: their faults, their effects, and the reasons."""
