"""Plugin hooks for the tiktoken tokenizers."""

from __future__ import annotations

from jackfield.plugins import TokenizerSpec, hook

_CONFIG = "jackfield_tiktoken.config:TiktokenConfig"
# A vocabulary is read from a file; with `download` it is fetched, once.
_EFFECTS = frozenset({"files", "network"})
_NETWORK = ("openaipublic.blob.core.windows.net",)


@hook.tokenizers
def tokenizers() -> list[TokenizerSpec]:
    """Provide the tokenizers of OpenAI models."""
    return [
        TokenizerSpec(
            name="o200k_base",
            target="jackfield_tiktoken.tokenizer:O200kBase",
            config=_CONFIG,
            summary="Counts as OpenAI's models since GPT-4o do",
            effects=_EFFECTS,
            network=_NETWORK,
            check="jackfield_tiktoken.tokenizer:check_o200k_base",
        ),
        TokenizerSpec(
            name="cl100k_base",
            target="jackfield_tiktoken.tokenizer:CL100kBase",
            config=_CONFIG,
            summary="Counts as GPT-4, GPT-3.5 and OpenAI's embedding models do",
            effects=_EFFECTS,
            network=_NETWORK,
            check="jackfield_tiktoken.tokenizer:check_cl100k_base",
        ),
    ]
