"""OpenAI's vocabularies: where each is located, and how it splits text."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar

from jackfield.config import Configured
from jackfield.errors import ConfigError
from jackfield_bpe import BPETokenizer, SafeEncoding, Vocabulary, read_vocabulary, vocabulary_of
from jackfield_tiktoken.config import TiktokenConfig

# The pieces into which texts are split before their bytes are merged; they belong to each vocabulary and affect its
# counts.
_SIGN = r"[^\r\n\p{L}\p{N}]?"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_NUMBER = r"\p{N}{1,3}"
_BLANKS = r"\s+(?!\S)|\s+"


class TiktokenTokenizer(Configured, BPETokenizer):
    """A tokenizer with one of OpenAI's vocabularies.

    The vocabulary file is read on first use, and downloaded only if the settings allow it. Reading takes half a second
    and 70 MB of memory, so a vocabulary is shared within the process. Settings are those of `TiktokenConfig`.

    Attributes:
        url: The URL of the vocabulary, which also identifies it in tiktoken's cache.
        hash: The SHA-256 hash of the vocabulary file, in hex.
        pattern: The regular expression that splits text before merging.
        control_tokens: The ids of the control tokens. Text is never encoded as a control token.
    """

    url: ClassVar[str]
    hash: ClassVar[str]
    pattern: ClassVar[str]
    control_tokens: ClassVar[Mapping[str, int]]

    config_class = TiktokenConfig
    config: TiktokenConfig

    def load(self) -> SafeEncoding:
        """Load the vocabulary. See `BPETokenizer`.

        Raises:
            ConfigError: The file is missing, cannot be downloaded, or has an unexpected hash.
        """
        path = Path(self.config.path).expanduser() if self.config.path else self.cached()
        if path and (self.config.path or path.is_file()):
            return _shared(type(self), path, self.config.sha256 or self.hash)
        if self.config.download:
            return _encoding(type(self), vocabulary_of(self._fetched(), self.url, sha256=self.hash))
        raise ConfigError(f"tokenizer {self.name!r}: {self.missing()[0]}")

    def cached(self) -> Path | None:
        """Return the path of the file in tiktoken's cache, or None if the cache is disabled."""
        folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
        if folder is None:
            folder = str(Path(tempfile.gettempdir(), "data-gym-cache"))
        name = hashlib.sha1(self.url.encode(), usedforsecurity=False).hexdigest()
        return Path(folder, name) if folder else None

    def missing(self) -> list[str]:
        """Return the setup steps the user still has to take, or [] if the vocabulary is cached."""
        path = self.cached()
        if path and path.is_file():
            return []
        return [
            f"its vocabulary is not on this machine: set `path` to a file {self.name}.tiktoken, or TIKTOKEN_CACHE_DIR "
            f"to a folder where tiktoken has cached it, or `download: true` to download it once ({self.url})"
        ]

    def _fetched(self) -> bytes:
        from tiktoken.load import read_file_cached

        try:
            return read_file_cached(self.url, self.hash)
        except (ValueError, OSError) as error:  # errors of `requests` are OSErrors
            raise ConfigError(
                f"tokenizer {self.name!r}: its vocabulary cannot be downloaded ({type(error).__name__}: {error}): "
                f"download {self.url} another way, and set `path` to it"
            ) from error


@cache  # a file with a hash never changes, and each instance of a process would keep the same 70 MB
def _shared(made: type[TiktokenTokenizer], path: Path, sha256: str) -> SafeEncoding:
    return _encoding(made, read_vocabulary(path, sha256=sha256))


def _encoding(made: type[TiktokenTokenizer], vocabulary: Vocabulary) -> SafeEncoding:
    import tiktoken

    # A custom vocabulary may use the ids of OpenAI's control tokens.
    control_tokens = dict(made.control_tokens) if vocabulary.sha256 == made.hash else {}
    return SafeEncoding(
        tiktoken.Encoding(
            made.name,
            pat_str=made.pattern,
            mergeable_ranks=dict(vocabulary.ranks),
            special_tokens=control_tokens,
        )
    )


class O200kBase(TiktokenTokenizer):
    """The vocabulary of OpenAI's models since GPT-4o: 199,998 tokens."""

    name = "o200k_base"
    url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    hash = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
    # Words begin at capitals, so camelCase is two.
    pattern = "|".join(
        (
            rf"{_SIGN}{_UPPER}*{_LOWER}+{_SHORT}?",
            rf"{_SIGN}{_UPPER}+{_LOWER}*{_SHORT}?",
            _NUMBER,
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            _BLANKS,
        )
    )
    control_tokens: ClassVar[Mapping[str, int]] = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}


class CL100kBase(TiktokenTokenizer):
    """The vocabulary of GPT-4, GPT-3.5 and OpenAI's embedding models: 100,256 tokens."""

    name = "cl100k_base"
    url = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
    hash = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
    pattern = "|".join(
        (
            _SHORT,
            rf"{_SIGN}\p{{L}}+",
            _NUMBER,
            r" ?[^\s\p{L}\p{N}]+[\r\n]*",
            r"\s+$",
            r"\s*[\r\n]",
            _BLANKS,
        )
    )
    control_tokens: ClassVar[Mapping[str, int]] = {
        "<|endoftext|>": 100_257,
        "<|fim_prefix|>": 100_258,
        "<|fim_middle|>": 100_259,
        "<|fim_suffix|>": 100_260,
        "<|endofprompt|>": 100_276,
    }


def check_o200k_base() -> list[str]:
    """Return the setup steps missing on this machine."""
    return O200kBase().missing()


def check_cl100k_base() -> list[str]:
    """Return the setup steps missing on this machine."""
    return CL100kBase().missing()
