"""Contract tests for plugins, to be subclassed in a plugin's own tests.

```python
from jackfield_testkit.suites import LLMBackendSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-acme"


class TestBackend(LLMBackendSuite):
    component = "jackfield-acme/acme"
    unsupported_options = {"seed": "acme's protocol has no seed"}
```
"""

import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jackfield_testkit.suites.agent import AgentSuite, AnswerSuite
    from jackfield_testkit.suites.base import Suite
    from jackfield_testkit.suites.call_format import CallFormatSuite
    from jackfield_testkit.suites.code_sandbox import CodeSandboxSuite
    from jackfield_testkit.suites.command import CommandSuite
    from jackfield_testkit.suites.conversation import ConversationSuite
    from jackfield_testkit.suites.embedder import EmbedderSuite
    from jackfield_testkit.suites.embedder_local import LocalEmbedderSuite
    from jackfield_testkit.suites.llm import LLMBackendSuite
    from jackfield_testkit.suites.llm_laws import ChatModelSuite
    from jackfield_testkit.suites.observer import ObserverSuite
    from jackfield_testkit.suites.parser import ParserSuite
    from jackfield_testkit.suites.plugin import PluginSuite
    from jackfield_testkit.suites.processor import ProcessorSuite
    from jackfield_testkit.suites.sandbox import SandboxSuite
    from jackfield_testkit.suites.searcher import SearcherSuite
    from jackfield_testkit.suites.server import ServerSuite
    from jackfield_testkit.suites.server_stdio import StdioServerSuite
    from jackfield_testkit.suites.store import StoreSuite
    from jackfield_testkit.suites.tokenizer import TokenizerSuite
    from jackfield_testkit.suites.tool import ToolSuite
    from jackfield_testkit.suites.toolset import ToolsetSuite

__all__ = [
    "AgentSuite",
    "AnswerSuite",
    "CallFormatSuite",
    "ChatModelSuite",
    "CodeSandboxSuite",
    "CommandSuite",
    "ConversationSuite",
    "EmbedderSuite",
    "LLMBackendSuite",
    "LocalEmbedderSuite",
    "ObserverSuite",
    "ParserSuite",
    "PluginSuite",
    "ProcessorSuite",
    "SandboxSuite",
    "SearcherSuite",
    "ServerSuite",
    "StdioServerSuite",
    "StoreSuite",
    "Suite",
    "TokenizerSuite",
    "ToolSuite",
    "ToolsetSuite",
]

_MODULES = {
    "AgentSuite": "agent",
    "AnswerSuite": "agent",
    "CallFormatSuite": "call_format",
    "ChatModelSuite": "llm_laws",
    "CodeSandboxSuite": "code_sandbox",
    "CommandSuite": "command",
    "ConversationSuite": "conversation",
    "EmbedderSuite": "embedder",
    "LLMBackendSuite": "llm",
    "LocalEmbedderSuite": "embedder_local",
    "ObserverSuite": "observer",
    "ParserSuite": "parser",
    "PluginSuite": "plugin",
    "ProcessorSuite": "processor",
    "SandboxSuite": "sandbox",
    "SearcherSuite": "searcher",
    "ServerSuite": "server",
    "StdioServerSuite": "server_stdio",
    "StoreSuite": "store",
    "Suite": "base",
    "TokenizerSuite": "tokenizer",
    "ToolSuite": "tool",
    "ToolsetSuite": "toolset",
}


def __getattr__(name: str) -> Any:
    # On first use, so that a plugin's tests import only the suites they need.
    if name not in _MODULES:
        raise AttributeError(f"module 'jackfield_testkit.suites' has no attribute {name!r}")
    # Before the import, so that pytest shows values in failed assertions.
    modules = (f"{__name__}.{module.name}" for module in iter_modules(__path__))
    pytest.register_assert_rewrite(*(module for module in modules if module not in sys.modules))
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
