"""Python for agents: code runs in a Jupyter kernel that keeps its state, in limits, and dies with the run."""
