"""Count tokens like Qwen 1 to 3, with the SDK's vocabulary but without importing the SDK."""

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

# Splits a text into pieces that are encoded independently. The pattern belongs to the vocabulary, and any other
# pattern would give wrong counts.
_PIECES = "|".join(
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",  # English contractions
        r"[^\r\n\p{L}\p{N}]?\p{L}+",  # a word, with one preceding symbol
        r"\p{N}",  # single digits
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",  # symbols, with the following line break
        r"\s*[\r\n]+",  # empty lines
        r"\s+(?!\S)",  # spaces, except for the last one before a word
        r"\s+",
    )
)
# The control tokens shared by Qwen 1, 2 and 3. They are only decoded: text is never encoded as one of them.
_CONTROL = {"<|endoftext|>": 151_643, "<|im_start|>": 151_644, "<|im_end|>": 151_645}

_log = logging.getLogger(__name__)


class QwenTokenizer(BPETokenizer):
    """Tokenizer of Qwen 1 to 3. Text is normalised to NFC first, as those models do.

    All instances in a process share one vocabulary, which takes a quarter of a second to load and 70 MB of memory.
    """

    name = "qwen"

    def load(self) -> SafeEncoding:
        """See `BPETokenizer`."""
        return _encoding(vocabulary_path())


def vocabulary_path() -> Path:
    """Return the path of the SDK's vocabulary.

    Raises:
        ConfigError: The SDK is not installed, or does not include the vocabulary.
    """
    try:
        sdk = importlib.metadata.distribution(SDK)
    except importlib.metadata.PackageNotFoundError as error:
        raise ConfigError(f"the tokenizer 'qwen' needs {FILE} from {SDK}: pip install {SDK}") from error
    usual = Path(str(sdk.locate_file(f"{SDK}/resources/{FILE}")))
    if usual.is_file():
        return usual
    for file in sdk.files or ():  # a slow listing, so only a fallback
        if file.name == FILE:
            return Path(str(sdk.locate_file(file)))
    raise ConfigError(f"{SDK} {sdk.version} does not contain {FILE}: install a different version of {SDK}")


@cache  # shared by all instances, because each takes 70 MB
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
