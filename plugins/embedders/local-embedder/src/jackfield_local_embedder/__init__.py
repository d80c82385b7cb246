"""Sentence-embedding models of Hugging Face, run in this process."""
