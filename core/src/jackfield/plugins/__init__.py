"""The API for plugin authors, and the host that finds and loads plugins.

The light module that an entry point names should only import the standard library and this package. Importing this
package does not load its submodules. Each name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        ServerSpec,
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
    from jackfield.plugins._loading import host_argument
    from jackfield.plugins._metadata import read_file
    from jackfield.plugins._misfits import Misfit, misfit_between, misfit_of
    from jackfield.plugins._policy import is_incompatible
    from jackfield.plugins._protocol import Plugins
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
    "Misfit",
    "ObserverSpec",
    "ParserSpec",
    "PluginHost",
    "Plugins",
    "PostprocessorSpec",
    "PreprocessorSpec",
    "Problem",
    "ProcessorSpec",
    "RegistrationManager",
    "Row",
    "SandboxSpec",
    "SearcherSpec",
    "ServerSpec",
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
    "host_argument",
    "in_language",
    "install_hint",
    "is_incompatible",
    "known_components",
    "misfit_between",
    "misfit_of",
    "parser_of_extension",
    "read_file",
    "scan",
    "specs_of_import",
]

_MODULES = {
    "API": "jackfield.plugins._catalog",
    "AgentSpec": "jackfield.descriptors",
    "CallFormatSpec": "jackfield.descriptors",
    "Catalog": "jackfield.plugins._catalog",
    "CommandSpec": "jackfield.descriptors",
    "ComponentSpec": "jackfield.descriptors",
    "Config": "jackfield.config",
    "EmbedderSpec": "jackfield.descriptors",
    "Known": "jackfield.plugins._known",
    "LLMSpec": "jackfield.descriptors",
    "Misfit": "jackfield.plugins._misfits",
    "ObserverSpec": "jackfield.descriptors",
    "ParserSpec": "jackfield.descriptors",
    "PluginHost": "jackfield.plugins._host",
    "Plugins": "jackfield.plugins._protocol",
    "PostprocessorSpec": "jackfield.descriptors",
    "PreprocessorSpec": "jackfield.descriptors",
    "Problem": "jackfield.plugins._catalog",
    "ProcessorSpec": "jackfield.descriptors",
    "RegistrationManager": "jackfield.plugins._registration",
    "Row": "jackfield.plugins._catalog",
    "SandboxSpec": "jackfield.descriptors",
    "SearcherSpec": "jackfield.descriptors",
    "ServerSpec": "jackfield.descriptors",
    "Settings": "jackfield.settings",
    "StoreSpec": "jackfield.descriptors",
    "Texts": "jackfield.descriptors",
    "TokenizerSpec": "jackfield.descriptors",
    "ToolSpec": "jackfield.descriptors",
    "ToolsetSpec": "jackfield.descriptors",
    "default_chain": "jackfield.plugins._acting",
    "default_host": "jackfield.plugins._host",
    "enabled_by": "jackfield.plugins._acting",
    "fault_of": "jackfield.plugins._faults",
    "hook": "jackfield.hookspecs",
    "host_argument": "jackfield.plugins._loading",
    "in_language": "jackfield.descriptors",
    "install_hint": "jackfield.plugins._known",
    "is_incompatible": "jackfield.plugins._policy",
    "known_components": "jackfield.plugins._known",
    "misfit_between": "jackfield.plugins._misfits",
    "misfit_of": "jackfield.plugins._misfits",
    "parser_of_extension": "jackfield.plugins._known",
    "read_file": "jackfield.plugins._metadata",
    "scan": "jackfield.plugins._catalog",
    "specs_of_import": "jackfield.plugins._imports",
}


def __dir__() -> list[str]:
    return list(__all__)


if not TYPE_CHECKING:  # type checkers use the imports above

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(_MODULES[name])
        value = globals()[name] = module if name == "hook" else getattr(module, name)
        return value
