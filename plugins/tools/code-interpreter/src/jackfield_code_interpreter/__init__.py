"""Python execution for agents, with resource limits and a Jupyter kernel that keeps its state for the whole run."""
