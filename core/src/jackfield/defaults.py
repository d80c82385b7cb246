"""What the core asks for where nobody has said: the one place in which it names distributions, and what they offer."""

from __future__ import annotations

DEFAULT_CHAIN = (
    "jackfield-system-message/language",
    "jackfield-multimodal/multimodal",
    "jackfield-truncation/truncation",
)
"""What stands around every model where it is installed and nobody has said otherwise, by full address.

It is the one exception to "installed is not active": without it, a long history or a document in a message would be an
error in every first program. Policy can block each; a processor of the same name that is named or enabled replaces it.
"""

CALL_FORMAT = "nous"
"""How tools are told to a model that takes none natively."""

COMPATIBLE_SERVER = "openai"
"""The backend for a server of which only the address is known."""

FIRST_BACKEND = "jackfield-openai"
"""What an installation without a backend is advised to install."""

AGENT_WITH_FILES = "assistant"
"""The kind of agent that the command line makes where there are documents."""

MANAGER = "jackfield-manage"
"""Whose commands manage the installation.

Two things hold for it alone, where it is proven to be ours: only a rule that names it keeps it from loading, and its
commands have their names to themselves.
"""

TERMINAL = "jackfield-terminal"
"""Whose commands ask agents: `TERMINAL_COMMANDS`, with what they do. Nothing else holds for it than for any plugin."""

TERMINAL_COMMANDS = {"run": "ask an agent one thing", "chat": "talk with an agent"}
