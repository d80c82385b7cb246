"""Python for agents: code runs in a Jupyter kernel that keeps its state, within limits, and ends with the run."""
