"""The sandbox `monty`: short Python code in an interpreter that has no files, network and programs."""
