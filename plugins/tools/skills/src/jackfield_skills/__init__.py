"""Skills: folders of instructions that a model knows by name and reads on demand."""
