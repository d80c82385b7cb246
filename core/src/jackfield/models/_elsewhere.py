"""What backends are called elsewhere, and what to type here: for errors only, which decide nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from jackfield.defaults import COMPATIBLE_SERVER

_SAME_BACKEND: Mapping[str, str] = MappingProxyType(
    {
        "qwenvl_oai": COMPATIBLE_SERVER,
        "qwenomni_oai": COMPATIBLE_SERVER,
        "qwenaudio_oai": COMPATIBLE_SERVER,
        "qwenvlo_dashscope": "qwenvl_dashscope",
        "dashscope": "qwen_dashscope",
    }
)
# Their usual addresses, as far as they run on this machine.
_SERVERS: Mapping[str, str] = MappingProxyType(
    {
        "ollama": "http://localhost:11434/v1",
        "vllm": "http://localhost:8000/v1",
        "sglang": "http://localhost:30000/v1",
        "llama.cpp": "http://localhost:8080/v1",
        "lmstudio": "http://localhost:1234/v1",
        "deepseek": "",
        "openrouter": "",
    }
)


def hint_for_backend(backend: str, model: str, names: Sequence[str]) -> str:
    """What to type in place of a backend's name from elsewhere; '' for one that is installed, or that nobody knows."""
    if backend in names:
        return ""
    shown = model or "MODEL"
    if meant := _SAME_BACKEND.get(backend):
        return f"there is no backend {backend!r}; write {meant}:{shown}, or model_type={meant!r}, which does the same"
    if backend in _SERVERS:
        configured = {"model_type": COMPATIBLE_SERVER, "model": shown, "model_server": backend}
        address = _SERVERS[backend]
        typed = f"; on the command line -m {COMPATIBLE_SERVER}:{shown} --base-url {address}" if address else ""
        return f"{backend!r} is a server, not a backend: write {configured}{typed}"
    return ""


def is_server(word: object) -> bool:
    """Whether a word in place of an address names a server that speaks Chat Completions."""
    return isinstance(word, str) and (word in _SERVERS or word == "dashscope")
