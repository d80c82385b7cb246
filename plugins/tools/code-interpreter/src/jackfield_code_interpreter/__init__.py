"""Python for agents: code runs within limits in a Jupyter kernel, which keeps its state and ends with the run."""
