"""Load a model with its tokenizer. Torch is imported only when a model is loaded."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jackfield.errors import ConfigError, ModelRequestError
from jackfield_transformers.config import TransformersConfig
from jackfield_transformers.errors import BACKEND, translate_loading

END_OF_THOUGHT = "</think>"


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModel:
    """A model ready to answer.

    Attributes:
        name: The model's name in the configuration.
        model: The transformers model, which can `generate`.
        tokenizer: The transformers tokenizer.
        writer: Writes prompts; the tokenizer, or the processor of a model that accepts images.
        template: The Jinja chat template.
        end_tokens: The tokens that end an answer.
        context_tokens: The maximum number of tokens in prompt and answer combined, or None if unknown.
        thinks: True if text in `<think>` is returned as reasoning.
        sees: True if the model accepts images.
        turn: The lock to hold while using the model.
    """

    name: str
    model: Any
    tokenizer: Any
    writer: Any
    template: str
    end_tokens: frozenset[int]
    context_tokens: int | None
    thinks: bool
    sees: bool
    turn: threading.Lock = field(default_factory=threading.Lock)

    def text_of(self, tokens: Sequence[int]) -> str:
        """Decode tokens, omitting special tokens."""
        text: str = self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def load(name: str, config: TransformersConfig, *, key: str = "") -> LoadedModel:
    """Load a model, which takes from seconds to minutes.

    Args:
        name: A directory, or a name on the hub.
        config: The settings.
        key: A token for the hub. If '', the machine's login is used if there is one.

    Raises:
        ModelServiceError: The model does not exist or cannot be loaded.
    """
    source = Path(name).expanduser()
    with translate_loading(name, key=key):
        options: dict[str, Any] = {
            "revision": config.revision,
            # Always set, or transformers would ask on the terminal.
            "trust_remote_code": config.trust_remote_code,
            # The hub must not learn the names of local folders.
            "local_files_only": config.local_files_only or source.is_dir(),
            **({"token": key} if key else {}),
        }
        return _load(str(source) if source.is_dir() else name, name, config, options)


def _load(source: str, name: str, config: TransformersConfig, options: Mapping[str, Any]) -> LoadedModel:
    import transformers

    auto: Any = transformers  # some of its annotations are wrong
    # The configuration first, because its errors about a directory without a model are the clearest.
    auto.AutoConfig.from_pretrained(source, **options)
    if config.images:
        writer = auto.AutoProcessor.from_pretrained(source, **options)
        tokenizer, auto_class = writer.tokenizer, auto.AutoModelForImageTextToText
    else:
        writer = tokenizer = auto.AutoTokenizer.from_pretrained(source, **options)
        auto_class = auto.AutoModelForCausalLM
    template = _template(writer, name, config)
    model = auto_class.from_pretrained(source, dtype=config.dtype, **options, **config.model_kwargs)
    if "device_map" not in config.model_kwargs:
        model = model.to(_device(config.device))
    if getattr(tokenizer, "chat_control_tokens", ()) is None:
        tokenizer.chat_control_tokens = []  # only special tokens can forge a turn; `<tool_call>` is allowed
    return LoadedModel(
        name=name,
        model=model,
        tokenizer=tokenizer,
        writer=writer,
        template=template,
        end_tokens=_end_tokens(model, tokenizer),
        context_tokens=config.context_tokens or context_of(model.config.to_dict()),
        thinks=END_OF_THOUGHT in template if config.reasoning is None else config.reasoning,
        sees=config.images,
    )


def can_sanitize(writer: Any) -> bool:
    """Return True if this version of transformers can treat special tokens in messages as plain text."""
    return "sanitize_control_tokens" in inspect.signature(writer.apply_chat_template).parameters


def context_of(model_config: Mapping[str, Any]) -> int | None:
    """Return the context size in tokens from a model's `config.json`, or None if not stated."""
    for values in (model_config, model_config.get("text_config") or {}):
        for key in ("max_position_embeddings", "n_positions", "max_seq_len"):
            tokens = values.get(key)
            if isinstance(tokens, int) and tokens > 0:
                return tokens
    return None


def context_of_folder(name: str) -> int | None:
    """Return the context size of a model in a directory, or None if unknown."""
    try:
        config = json.loads((Path(name).expanduser() / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # loading the model raises the error
    return context_of(config) if isinstance(config, dict) else None


def _template(writer: Any, name: str, config: TransformersConfig) -> str:
    if config.chat_template is not None:
        return _configured_template(config.chat_template)
    template = writer.chat_template
    if isinstance(template, Mapping):
        template = template.get("default")
    if not isinstance(template, str):
        raise ModelRequestError(
            f"{BACKEND}: {name!r} has no chat template, so it is not a chat model: "
            f"use its instruct or chat variant, or set chat_template",
            backend=BACKEND,
        )
    return template


def _configured_template(text: str) -> str:
    if "{" in text:
        return text
    try:
        return Path(text).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"chat_template is neither a Jinja template nor a readable file ({error.strerror}): {text!r}"
        ) from error


def _device(wanted: str) -> str:
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.device(wanted)
    except RuntimeError as error:
        raise ConfigError(
            f"{wanted!r} is not a valid torch device: use auto, cpu, cuda, or a numbered one such as cuda:1"
        ) from error
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device {wanted!r} was not found by torch: set device to auto or cpu")
    return wanted


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    ends = model.generation_config.eos_token_id
    listed = ends if isinstance(ends, list) else [ends]
    return frozenset(token for token in (*listed, tokenizer.eos_token_id) if token is not None)
