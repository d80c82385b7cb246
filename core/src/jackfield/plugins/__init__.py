"""The API for plugin authors, and how plugins are found.

A light module (the one an entry point names) imports the standard library and this package, nothing else: nothing heavy
is loaded before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield._lazy import fetching

if TYPE_CHECKING:
    from jackfield import hookspecs as hook
    from jackfield.config import Config
    from jackfield.descriptors import (
        AgentSpec,
        CallFormatSpec,
        CommandSpec,
        ComponentSpec,
        EmbedderSpec,
        LLMSpec,
        ObserverSpec,
        ParserSpec,
        PostprocessorSpec,
        PreprocessorSpec,
        ProcessorSpec,
        SandboxSpec,
        SearcherSpec,
        StoreSpec,
        Texts,
        TokenizerSpec,
        ToolsetSpec,
        ToolSpec,
        in_language,
    )
    from jackfield.plugins._acting import default_chain, enabled_by
    from jackfield.plugins._catalog import API, Catalog, Problem, Row, scan
    from jackfield.plugins._faults import fault_of
    from jackfield.plugins._host import PluginHost, default_host
    from jackfield.plugins._imports import specs_of_import
    from jackfield.plugins._known import Known, install_hint, known_components, parser_of_extension
    from jackfield.plugins._metadata import read_file
    from jackfield.plugins._policy import is_incompatible
    from jackfield.plugins._registration import RegistrationManager
    from jackfield.settings import Settings

__all__ = [
    "API",
    "AgentSpec",
    "CallFormatSpec",
    "Catalog",
    "CommandSpec",
    "ComponentSpec",
    "Config",
    "EmbedderSpec",
    "Known",
    "LLMSpec",
    "ObserverSpec",
    "ParserSpec",
    "PluginHost",
    "PostprocessorSpec",
    "PreprocessorSpec",
    "Problem",
    "ProcessorSpec",
    "RegistrationManager",
    "Row",
    "SandboxSpec",
    "SearcherSpec",
    "Settings",
    "StoreSpec",
    "Texts",
    "TokenizerSpec",
    "ToolSpec",
    "ToolsetSpec",
    "default_chain",
    "default_host",
    "enabled_by",
    "fault_of",
    "hook",
    "in_language",
    "install_hint",
    "is_incompatible",
    "known_components",
    "parser_of_extension",
    "read_file",
    "scan",
    "specs_of_import",
]

__getattr__, __dir__ = fetching(
    __name__,
    {
        **dict.fromkeys((*(name for name in __all__ if name.endswith("Spec")), "Texts", "in_language"), "descriptors"),
        "hook": "hookspecs.",
        "Config": "config",
        "Settings": "settings",
        **dict.fromkeys(("default_chain", "enabled_by"), "plugins._acting"),
        **dict.fromkeys(("API", "Catalog", "Problem", "Row", "scan"), "plugins._catalog"),
        "fault_of": "plugins._faults",
        **dict.fromkeys(("PluginHost", "default_host"), "plugins._host"),
        "specs_of_import": "plugins._imports",
        **dict.fromkeys(("Known", "install_hint", "known_components", "parser_of_extension"), "plugins._known"),
        "read_file": "plugins._metadata",
        "is_incompatible": "plugins._policy",
        "RegistrationManager": "plugins._registration",
    },
)
