"""Count tokens as Qwen 1 to 3 do, with the vocabulary of the SDK, which is not imported."""

from __future__ import annotations

import importlib.metadata
import logging
from functools import cache
from pathlib import Path

from jackfield.errors import ConfigError
from jackfield_bpe import BPETokenizer, SafeEncoding, read_vocabulary

SDK = "dashscope"
FILE = "qwen.tiktoken"
SHA256 = "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186"

# Splits a text into pieces, each of which is encoded alone. The pattern belongs to the vocabulary; with another
# pattern, the counts would be wrong.
_PIECES = "|".join(
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",  # English contractions
        r"[^\r\n\p{L}\p{N}]?\p{L}+",  # a word, with one sign before it
        r"\p{N}",  # digits one by one
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",  # signs, with the end of their line
        r"\s*[\r\n]+",  # empty lines
        r"\s+(?!\S)",  # blanks, except for the last one before a word
        r"\s+",
    )
)
# The control tokens that Qwen 1, 2 and 3 share. Texts never become them; they are only decoded.
_CONTROL = {"<|endoftext|>": 151_643, "<|im_start|>": 151_644, "<|im_end|>": 151_645}

_log = logging.getLogger(__name__)


class QwenTokenizer(BPETokenizer):
    """Counts and cuts as Qwen 1 to 3 do. Texts are normalised to NFC first, as those models' texts are.

    All instances of a process share one vocabulary, which takes a quarter of a second to read and 70 MB to keep.
    """

    name = "qwen"

    def load(self) -> SafeEncoding:
        """See `BPETokenizer`."""
        return _encoding(vocabulary_path())


def vocabulary_path() -> Path:
    """Return the path of the SDK's vocabulary.

    Raises:
        ConfigError: The SDK is not installed, or does not contain it.
    """
    try:
        sdk = importlib.metadata.distribution(SDK)
    except importlib.metadata.PackageNotFoundError as error:
        raise ConfigError(f"the tokenizer 'qwen' needs the file {FILE} of {SDK}: pip install {SDK}") from error
    usual = Path(str(sdk.locate_file(f"{SDK}/resources/{FILE}")))
    if usual.is_file():
        return usual
    for file in sdk.files or ():  # reading this list takes longer than all the rest
        if file.name == FILE:
            return Path(str(sdk.locate_file(file)))
    raise ConfigError(f"{SDK} {sdk.version} has no file {FILE}: install another version of it")


@cache  # one for all instances, because each takes 70 MB
def _encoding(path: Path) -> SafeEncoding:
    import tiktoken

    vocabulary = read_vocabulary(path)
    if vocabulary.sha256 != SHA256:
        _log.warning(
            "%s is not the vocabulary this tokenizer expects (SHA-256 %s…): its counts may differ from the model's",
            path,
            vocabulary.sha256[:12],
        )
    encoding = tiktoken.Encoding(
        QwenTokenizer.name, pat_str=_PIECES, mergeable_ranks=dict(vocabulary.ranks), special_tokens=_CONTROL
    )
    return SafeEncoding(encoding, normal_form="NFC")
