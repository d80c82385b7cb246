"""Language models of Hugging Face transformers, run in this process."""
