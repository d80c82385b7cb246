"""Read weights from safetensors files as 32-bit floats."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from jackfield_local_embedder.arrays import Floats
from jackfield_local_embedder.recipe import read_json, unusable

_ONE_FILE = "model.safetensors"
_LIST_OF_FILES = "model.safetensors.index.json"
# The names in the oldest models.
_RENAMED = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
READABLE = frozenset({"F16", "F32", "F64"})


class Weights(dict[str, Floats]):
    """Arrays by name."""

    def check(self, needed: str, name: str) -> None:
        """Check that a weight exists.

        Raises:
            ModelRequestError: The weight is missing.
        """
        if needed not in self:
            raise unusable(name, f"lacks weights: {needed}")


def has_weights(folder: Path) -> bool:
    """Return True if the folder contains weights in a readable format."""
    return (folder / _ONE_FILE).is_file() or (folder / _LIST_OF_FILES).is_file()


def read_weights(folder: Path, name: str, prefixes: Iterable[str], known: str) -> Weights:
    """Read all floating-point weights in a folder.

    Args:
        folder: The folder with the files.
        name: The model's name, for errors.
        prefixes: Possible prefixes of all weight names. The prefix in use is stripped.
        known: The name of a weight that must exist, from which the prefix is determined.

    Raises:
        ModelRequestError: Weights are missing or damaged, or have a type that numpy does not support.
    """
    weights = Weights()
    for file in _files(folder, name):
        _read(file, name, weights)
    for prefix in prefixes:
        if prefix + known in weights:
            return Weights(
                {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}
            )
    raise unusable(name, f"lacks weights: {known}")


def _files(folder: Path, name: str) -> list[Path]:
    if (folder / _LIST_OF_FILES).is_file() and not (folder / _ONE_FILE).is_file():
        listed = read_json(folder / _LIST_OF_FILES, name).get("weight_map")
        if not isinstance(listed, dict):
            raise unusable(name, f"has an invalid file: {folder / _LIST_OF_FILES}")
        return [folder / file for file in sorted({str(file) for file in listed.values()})]
    return [folder / _ONE_FILE]


def _read(path: Path, name: str, into: Weights) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            for key in file.keys():  # noqa: SIM118 - it is no mapping
                kind = file.get_slice(key).get_dtype()
                if kind in READABLE:
                    into[_modern(key)] = file.get_tensor(key).astype(np.float32, copy=False)
                elif kind.startswith(("BF", "F8")):
                    raise unusable(
                        name, f"has weights of type {kind}, which numpy does not support: set engine to torch"
                    )
    except FileNotFoundError:
        raise unusable(name, f"lacks the file {path.name} in {path.parent}") from None
    except (SafetensorError, OSError) as error:
        raise unusable(name, f"has weights that cannot be read, {path}: {error}") from error


def _modern(key: str) -> str:
    for old, new in _RENAMED.items():
        if key.endswith(old):
            return key.removesuffix(old) + new
    return key
