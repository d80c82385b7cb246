"""Byte-pair encoding of arbitrary text, for tokenizers with a vocabulary in tiktoken format."""

from jackfield_bpe.safe import LONGEST, SafeEncoding
from jackfield_bpe.tokenizer import BPETokenizer
from jackfield_bpe.vocabulary import Vocabulary, read_vocabulary, vocabulary_of

__all__ = ["LONGEST", "BPETokenizer", "SafeEncoding", "Vocabulary", "read_vocabulary", "vocabulary_of"]
