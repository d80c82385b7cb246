"""The tool `shell`: runs commands in a sandbox, in the workspace of a run."""
