"""Translate errors of transformers, the hub and torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jackfield.errors import (
    JackfieldError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelRequestError,
    ModelServiceError,
)
from jackfield.quoting import quote_text

BACKEND = "transformers"
_MOST_SHOWN = 300
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


@contextmanager
def translate_loading(model: str, *, key: str = "") -> Iterator[None]:
    """Translate errors raised while loading a model, removing `key` from their messages."""
    try:
        yield
    except JackfieldError:
        raise
    except (Exception, MemoryError) as error:
        raise error_of_loading(error, model, key=key) from error


@contextmanager
def translate_answering(model: str) -> Iterator[None]:
    """Translate errors raised while generating an answer."""
    try:
        yield
    except JackfieldError:
        raise
    except (Exception, MemoryError) as error:
        raise error_of_answering(error, model) from error


def error_of_loading(error: Exception, model: str, *, key: str = "") -> ModelServiceError:
    """Return the error for a model that could not be loaded."""
    causes = list(_causes(error))
    text = quote_text(str(error), key, _MOST_SHOWN) or type(error).__name__
    if _is_out_of_memory(error):
        return _out_of_memory(
            f"the model {model!r} does not fit into memory", "use a smaller model, or a different dtype or device"
        )
    if _is_any(causes, ImportError):
        return ModelServiceError(f"{BACKEND}: {model!r} needs a package that is not installed: {text}", backend=BACKEND)
    if "trust_remote_code" in str(error):
        return ModelRequestError(
            f"{BACKEND}: {model!r} contains its own Python code, which is not run: review the code, "
            f"then set trust_remote_code to true and revision to the commit you reviewed",
            backend=BACKEND,
        )
    if "Unrecognized configuration class" in str(error):
        return ModelRequestError(
            f"{BACKEND}: {model!r} is not a text generation model; if it also accepts images, set images to true",
            backend=BACKEND,
        )
    where = "the folder" if Path(model).expanduser().is_dir() else "the repository"
    return _error_of_hub(causes, model) or _not_found(f"{where} {model!r} contains no loadable model: {text}")


def _error_of_hub(causes: list[BaseException], model: str) -> ModelServiceError | None:
    """Return the error for a hub failure, or None if the hub is not among the causes."""
    from huggingface_hub import errors as hub

    if _is_any(causes, hub.GatedRepoError):
        return ModelAuthError(
            f"{BACKEND}: {model!r} is gated: accept its terms on the hub, and set HF_TOKEN to a token of that account",
            backend=BACKEND,
        )
    if _is_any(causes, hub.RevisionNotFoundError):
        return _not_found(f"{model!r} has no such revision: check `revision`")
    if _is_any(causes, hub.RepositoryNotFoundError):
        return _not_found(f"no model {model!r} on the hub, or it requires HF_TOKEN: check the name")
    if _is_any(causes, hub.HFValidationError):
        return _not_found(f"no such folder: {model!r}; names on the hub have the form org/name")
    offline = _is_any(causes, hub.OfflineModeIsEnabled)
    if not offline and any(_is_network_error(cause) for cause in causes):
        return ModelConnectionError(
            f"{BACKEND}: {model!r} is not on this disk, and the hub cannot be reached: check the network "
            "and the model's name",
            backend=BACKEND,
        )
    if _is_any(causes, hub.OfflineModeIsEnabled, hub.LocalEntryNotFoundError):
        return _not_found(
            f"{model!r} is not on this disk, and access to the hub is disabled: download the model first, "
            f"or allow access (local_files_only, HF_HUB_OFFLINE)"
        )
    return None


def error_of_answering(error: Exception, model: str) -> ModelServiceError:
    """Return the error for a model that could not answer."""
    from jinja2 import TemplateError

    text = quote_text(str(error), "", _MOST_SHOWN) or type(error).__name__
    if _is_out_of_memory(error):
        return _out_of_memory(f"{model!r} ran out of memory", "shorten the history, or lower max_tokens")
    if isinstance(error, TemplateError):
        return ModelRequestError(
            f"{BACKEND}: the chat template of {model!r} rejects the history ({text}): change the "
            "history, or set chat_template",
            backend=BACKEND,
        )
    return ModelServiceError(f"{BACKEND}: {model!r} failed: {type(error).__name__}: {text}", backend=BACKEND)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_any(causes: list[BaseException], *classes: type[BaseException]) -> bool:
    return any(isinstance(cause, classes) for cause in causes)


def _is_network_error(cause: BaseException) -> bool:
    # The hub's client has used two HTTP libraries, which share no class.
    name = type(cause).__name__
    return any(word in name for word in ("ConnectError", "ConnectionError", "Timeout"))


def _is_out_of_memory(error: Exception) -> bool:
    # torch has an exception class for this only on accelerators; on a CPU, it raises a RuntimeError.
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in _OUT_OF_MEMORY)


def _out_of_memory(what: str, advice: str) -> ModelServiceError:
    return ModelRequestError(f"{BACKEND}: {what}: {advice}", backend=BACKEND, code="out_of_memory")


def _not_found(text: str) -> ModelServiceError:
    return ModelNotFoundError(f"{BACKEND}: {text}", backend=BACKEND)
