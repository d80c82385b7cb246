"""The `shell` tool: run commands in a sandbox, in the workspace of a run."""
