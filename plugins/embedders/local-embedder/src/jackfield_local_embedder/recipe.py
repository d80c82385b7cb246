"""Read how a model turns texts into vectors, from the files written by sentence-transformers.

Source: the file formats of sentence-transformers 2 to 5 (`modules.json` and the folders it names).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jackfield.errors import ModelRequestError

BACKEND = "transformers"

Pooling = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]

# In the order in which the results of several methods are concatenated.
_POOLINGS: Mapping[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
_ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU")
# A tokenizer without a limit states a very large number instead.
_NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Dense:
    """A dense layer after pooling: the folder with its weights, and the name of its activation function."""

    folder: Path
    activation: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """The steps that turn texts into vectors.

    Attributes:
        folder: The folder of the transformer model.
        pooling: The pooling methods. The results of several methods are concatenated.
        dense: The layers after pooling.
        normalize: Scale vectors to unit length at the end.
        max_tokens: The length at which texts are truncated, or None if the files state no limit.
        lower_case: Convert texts to lower case first.
        document_prompt: The model's prefix for documents.
        query_prompt: The model's prefix for queries.
    """

    folder: Path
    pooling: tuple[Pooling, ...] = ("mean",)
    dense: tuple[Dense, ...] = ()
    normalize: bool = False
    max_tokens: int | None = None
    lower_case: bool = False
    document_prompt: str = ""
    query_prompt: str = ""


def read_recipe(root: Path, name: str) -> Recipe:
    """Read the steps from a model folder. Without `modules.json`, mean pooling is assumed.

    Raises:
        ModelRequestError: A file is damaged, or the model uses an unsupported module.
    """
    modules = read_json(root / "modules.json", name, otherwise=[{"type": ".Transformer", "path": ""}])
    pooling: tuple[Pooling, ...] = ()
    dense: list[Dense] = []
    folder, normalize = root, False
    for module in modules:
        module_folder = root / str(module.get("path", ""))
        match str(module.get("type", "")).rpartition(".")[2]:
            case "Transformer":
                folder = module_folder
            case "Pooling":
                pooling = _pooling(read_json(module_folder / "config.json", name), name)
            case "Dense":
                dense.append(_dense(module_folder, name))
            case "Normalize":
                normalize = True
            case other:
                raise unusable(name, f"has a module {other!r}, which is not supported")
    prompts = _prompts(read_json(root / "config_sentence_transformers.json", name, otherwise={}))
    length = read_json(folder / "sentence_bert_config.json", name, otherwise={})
    return Recipe(
        folder=folder,
        pooling=pooling or ("mean",),
        dense=tuple(dense),
        normalize=normalize,
        max_tokens=length.get("max_seq_length") or _length_of_tokenizer(folder, name),
        lower_case=bool(length.get("do_lower_case")),
        document_prompt=prompts[0],
        query_prompt=prompts[1],
    )


def unusable(name: str, what: str) -> ModelRequestError:
    """Return the error for a model that cannot be used."""
    return ModelRequestError(f"{BACKEND}: the model {name!r} {what}", backend=BACKEND)


def read_json(path: Path, name: str, *, otherwise: Any = None) -> Any:
    """Return the content of a JSON file, or `otherwise` if an optional file is missing.

    Raises:
        ModelRequestError: The file is damaged, or it is missing and required.
    """
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        if otherwise is not None:
            return otherwise
        raise unusable(name, f"lacks the file {path.name} in {path.parent}") from None
    except (ValueError, OSError, RecursionError) as error:
        raise unusable(name, f"has a file that cannot be read, {path}: {error}") from error
    if not isinstance(value, dict if otherwise is None else type(otherwise)):
        raise unusable(name, f"has an invalid file: {path}")
    return value


def _pooling(config: Mapping[str, Any], name: str) -> tuple[Pooling, ...]:
    if config.get("include_prompt") is False:
        raise unusable(name, "excludes the prompt from pooling, which is not supported")
    modes = _modes(config)
    for mode in modes:
        if mode not in _POOLINGS.values():
            raise unusable(name, f"pools by {mode!r}, which is not supported")
    return tuple(mode for mode in _POOLINGS.values() if mode in modes)


def _modes(config: Mapping[str, Any]) -> list[str]:
    """Return the pooling methods in a configuration. New files have one setting, old ones a flag per method."""
    mode = config.get("pooling_mode")
    if isinstance(mode, str):
        return [mode]
    return list(mode or ()) or [mode for key, mode in _POOLINGS.items() if config.get(key)] or ["mean"]


def _dense(folder: Path, name: str) -> Dense:
    path = str(read_json(folder / "config.json", name).get("activation_function", "torch.nn.modules.linear.Identity"))
    activation = path.rpartition(".")[2]
    if activation not in _ACTIVATIONS:
        raise unusable(name, f"has a layer with the activation function {path}, which is not supported")
    return Dense(folder, activation)


def _prompts(config: Mapping[str, Any]) -> tuple[str, str]:
    prompts = {str(key): str(value or "") for key, value in (config.get("prompts") or {}).items()}
    default = prompts.get(str(config.get("default_prompt_name")), "")
    query = prompts.get("query") or default
    for key in _DOCUMENT_PROMPTS:
        if prompts.get(key):
            return prompts[key], query
    return default, query


def _length_of_tokenizer(folder: Path, name: str) -> int | None:
    length = read_json(folder / "tokenizer_config.json", name, otherwise={}).get("model_max_length")
    return int(length) if isinstance(length, int | float) and 0 < length < _NO_LIMIT else None
