"""Locate a model in a folder or in the local Hugging Face cache, and download it only if allowed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jackfield.errors import ModelAuthError, ModelConnectionError, ModelNotFoundError, ModelServiceError
from jackfield.quoting import quote_text
from jackfield_local_embedder.config import HubConfig
from jackfield_local_embedder.recipe import BACKEND

_MOST_SHOWN = 300
USUAL_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
# Exclude copies of the weights for other engines, and pickled weights, which can run code.
_SETTINGS = ("*.json", "*.txt", "*.model")
_WANTED = (*_SETTINGS, "*.safetensors")
_OTHER_ENGINES = ("onnx/*", "openvino/*", "*/onnx/*", "*/openvino/*")
_PICKLED = ("pytorch_model*.bin", "*/pytorch_model.bin")


def folder_of(config: HubConfig, *, key: str = "", onnx: bool = False) -> Path:
    """Return the model folder. With `onnx`, ONNX files are fetched instead of the weights.

    Raises:
        ModelServiceError: The model is not on disk, and downloading is disabled or failed.
    """
    folder = Path(config.model).expanduser()
    if folder.is_dir():
        return folder
    try:
        if onnx or config.onnx_file:
            files = (config.onnx_file,) if config.onnx_file else USUAL_ONNX_FILES
            return _fetch(config, key, (*_SETTINGS, *files, *(f"{file}_data" for file in files)), ())
        fetched = _fetch(config, key, _WANTED)
        if config.download and not any(fetched.rglob("*.safetensors")):
            fetched = _fetch(config, key, _PICKLED)
    except Exception as error:
        raise _error_of(error, config, key) from error
    return fetched


def _fetch(config: HubConfig, key: str, patterns: tuple[str, ...], ignored: tuple[str, ...] = _OTHER_ENGINES) -> Path:
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            config.model,
            revision=config.revision,
            local_files_only=not config.download,
            token=key or None,
            allow_patterns=list(patterns),
            ignore_patterns=list(ignored),
        )
    )


def _error_of(error: Exception, config: HubConfig, key: str) -> ModelServiceError:
    from huggingface_hub import errors as hub

    name, causes = config.model, list(_causes(error))

    def is_any(*classes: type[BaseException]) -> bool:
        return any(isinstance(cause, classes) for cause in causes)

    if is_any(hub.GatedRepoError):
        return ModelAuthError(
            f"{BACKEND}: {name!r} is gated: accept its terms on the hub, and set HF_TOKEN to a token of that account",
            backend=BACKEND,
        )
    if is_any(hub.RevisionNotFoundError):
        return _not_found(f"{name!r} has no such revision: check `revision`")
    if is_any(hub.RepositoryNotFoundError):
        return _not_found(f"no model {name!r} on the hub, or it requires HF_TOKEN: check the name")
    if is_any(hub.HFValidationError):
        return _not_found(f"no such folder: {name!r}; names on the hub have the form org/name")
    if not config.download or is_any(hub.OfflineModeIsEnabled):
        return _not_found(
            f"no folder or downloaded model named {name!r}: set download to true to fetch it "
            f"from the hub (and unset HF_HUB_OFFLINE), or specify a folder"
        )
    text = quote_text(str(error), key, _MOST_SHOWN) or type(error).__name__
    return ModelConnectionError(f"{BACKEND}: {name!r} could not be fetched from the hub: {text}", backend=BACKEND)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _not_found(text: str) -> ModelServiceError:
    return ModelNotFoundError(f"{BACKEND}: {text}", backend=BACKEND)
