"""Run sentence-embedding models from Hugging Face in this process."""
