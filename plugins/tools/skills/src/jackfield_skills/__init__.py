"""Skills: folders of instructions that a model is told of, and reads when it needs them."""
