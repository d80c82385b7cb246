"""Create models from addresses and configurations, using the plugin that provides the backend."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jackfield._frames import ForgetLocals
from jackfield.config import LLMConfig
from jackfield.defaults import COMPATIBLE_SERVER, FIRST_BACKEND
from jackfield.errors import BrokenPluginError, ConfigError
from jackfield.models._base import BaseChatModel, make_processors
from jackfield.plugins._known import backend_of_model, known_with_key
from jackfield.plugins._protocol import Plugins
from jackfield.processors import Processor
from jackfield.suggestions import list_names

_HTTP = ("http://", "https://")
# Compiled on first use: few configurations need it.
_ADDRESS = r"(?i)(localhost|\d+(\.\d+){3}|\[[0-9a-f:]+\]|[\w-]+(\.[\w-]+)+)(:\d{2,5})?(/\S*)?"


def get_chat_model(
    cfg: str | Mapping[str, object] | LLMConfig | BaseChatModel,
    *,
    processors: Sequence[Processor | str | Mapping[str, object]] | None = None,
    add: bool = False,
    host: Plugins | None = None,
) -> BaseChatModel:
    """Create a model.

    Args:
        cfg: `"backend:model"`, or a dict or `LLMConfig` with `model` and `model_type` (the backend). A model object is
            returned unchanged. Without `model_type`, the backend is inferred from a setting that only one known backend
            has (`azure_endpoint`). Otherwise, the backend is inferred from a server address (Chat Completions) or the
            model name (`qwen-plus`).
        processors: The model's processors: objects, names, or dicts of `name` and settings. Unless `add` is True,
            `processors` replaces all others, including retries.
        add: True to add `processors` to the model's other processors. False to replace the others.
        host: The plugin host that resolves names. Defaults to the installed plugins.

    Raises:
        ConfigError: The backend is unknown, or a setting is not valid. The message contains no values, because they may
            be secret.
        PluginError: The backend or a processor is not installed, or cannot be loaded.
    """
    from jackfield.plugins._host import checked_host  # an import of agents needs no plugin

    host = checked_host(host)
    if isinstance(cfg, BaseChatModel):
        if processors is not None:
            raise ConfigError("processors cannot be added to an existing model: pass them when creating the model")
        return cfg
    with ForgetLocals():  # arguments may include an API key
        model = _make_model(cfg, host)
        if processors is not None:
            model._use_processors(make_processors(processors, host), add=add)
        return model


def _make_model(cfg: str | Mapping[str, object] | LLMConfig, host: Plugins) -> BaseChatModel:
    from jackfield.descriptors import LLMSpec  # an import of agents needs no plugin

    backend, values = _split(cfg, host.names("llm"))
    row = host.find("llm", backend)
    spec = host.spec_of(row, LLMSpec)
    model = values.get("model") or (spec.models[0] if len(spec.models) == 1 else "")
    if not model:
        raise ConfigError(
            f"no model specified for {backend}: use {backend}:MODEL, or set 'model'; there is no default model"
        )
    model_class = host.load_row(row)
    if not (isinstance(model_class, type) and issubclass(model_class, BaseChatModel)):
        raise BrokenPluginError(f"backend {backend!r}: {spec.target} is not a subclass of jackfield.BaseChatModel")
    return model_class({**values, "model_type": backend, "model": model}, host=host.narrowed_to(row))


def backend_of(cfg: str | Mapping[str, object] | LLMConfig, names: Sequence[str]) -> str:
    """Return the backend that a configuration names or implies.

    Args:
        cfg: The configuration, as for `get_chat_model`.
        names: The backend names that a string without a colon may refer to.

    Raises:
        ConfigError: The configuration does not name a backend, and its settings do not imply one.
    """
    return _split(cfg, names)[0]


def _split(cfg: object, names: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the backend and the configuration as a dict."""
    values = _as_dict(cfg, names)
    backend = values.get("model_type") or _implied_backend(values, names)
    if not isinstance(backend, str):
        raise ConfigError(f"model_type must be the name of a backend, got {type(backend).__name__}")
    if backend not in names and (hint := _names_elsewhere().get(backend)):
        raise ConfigError(hint.replace("MODEL", str(values.get("model") or "MODEL")))
    return backend, values


def _names_elsewhere() -> dict[str, str]:
    """Map other libraries' backend and server names to hints about Jackfield's names."""
    import json
    import pkgutil  # both for errors only

    texts: dict[str, str] = json.loads(pkgutil.get_data("jackfield.models", "elsewhere.json") or b"{}")
    return texts


def _as_dict(cfg: object, names: Sequence[str]) -> dict[str, Any]:
    match cfg:
        case LLMConfig():
            return {name: getattr(cfg, name) for name in cfg.model_fields_set}
        case Mapping():
            return dict(cfg)
        case str():
            return _parse_address(cfg, names)
    raise ConfigError(f"a model must be 'backend:model', a dict, an LLMConfig or a model, got {type(cfg).__name__}")


def _parse_address(text: str, names: Sequence[str]) -> dict[str, Any]:
    if text in names:
        return {"model_type": text}
    backend, colon, model = text.partition(":")
    if text.startswith(_HTTP) or (colon and _looks_like_url(text)):
        raise ConfigError(
            "a URL does not specify the model: pass a dict with 'model' and 'base_url', which must start with "
            "http:// or https://"
        )
    return {"model_type": backend.strip(), "model": model.strip()} if colon else {"model": text}


def _implied_backend(values: Mapping[str, object], names: Sequence[str]) -> str:
    """Infer the backend as Qwen-Agent does: from a backend-specific setting, the server address, or the model name."""
    if backend := known_with_key("llm", (key for key, value in values.items() if value)):
        return backend
    if any(_is_url(key, values.get(key)) for key in ("api_base", "base_url", "model_server")):
        return COMPATIBLE_SERVER
    model = str(values.get("model") or "")
    prefix = model.partition(":")[0] if ":" in model else ""
    if not prefix and (backend := backend_of_model(model)):
        return backend
    raise ConfigError(_no_backend_text(model, prefix, str(values.get("model_server")), names))


def _no_backend_text(model: str, prefix: str, server: str, names: Sequence[str]) -> str:
    installed = f"Installed: {list_names(names) or f'none; try pip install {FIRST_BACKEND}'}"
    if prefix:
        return f"in a dict, set the backend separately: model_type={prefix!r}. {installed}"
    if server in _names_elsewhere():
        return f"model_server={server!r} names a server: set model_type={COMPATIBLE_SERVER!r} as well"
    return f"no backend specified for model {model!r}: use backend:model, or set model_type. {installed}"


def _is_url(key: str, value: Any) -> bool:
    text = str(value or "")
    if text.startswith(_HTTP):
        return True
    if _looks_like_url(text):
        raise ConfigError(f"{key} must start with http:// or https://, as in {key}='http://localhost:8000/v1'")
    return False


def _looks_like_url(text: str) -> bool:
    """Return True if the text looks like a URL without a scheme."""
    return bool(re.fullmatch(_ADDRESS, text)) and text != "llama.cpp"
