"""Backend that runs Hugging Face transformers models in this process."""
