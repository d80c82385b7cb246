"""The `monty` sandbox: short Python code in an interpreter without access to files, network or programs."""
