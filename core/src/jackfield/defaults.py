"""The core's defaults: the only place in which it names packages, and what they offer."""

from __future__ import annotations

DEFAULT_CHAIN = (
    "jackfield-system-message/language",
    "jackfield-multimodal/multimodal",
    "jackfield-truncation/truncation",
)
"""Processors that act around every model if they are installed and nothing else is configured, by full address.

It is the one exception to "installed is not active": without it, a long history or a document in a message would be an
error in every first program. Policy can block each; an enabled or explicitly named processor of the same name
replaces it.
"""

CALL_FORMAT = "nous"
"""How tools are described to a model without native tool calls."""

COMPATIBLE_SERVER = "openai"
"""The backend for a server if only its address is known."""

FIRST_BACKEND = "jackfield-openai"
"""The package that errors suggest if no backend is installed."""

FIRST_SANDBOX = "jackfield-bubblewrap"
"""The package that errors suggest if no sandbox can be used."""

AGENT_WITH_FILES = "assistant"
"""The kind of agent that the command line makes if there are documents."""

MANAGER = "jackfield-manage"
"""The package whose commands manage the installation.

If it is proven to be ours, two things apply to it alone: only a rule that names it keeps it from loading, and no other
package can take the names of its commands.
"""

EXPLAINED_BY = "jackfield_manage.judging.absences:reasons"
"""What of it says why nobody offers a name: it takes the host, the kind and the address."""

TERMINAL = "jackfield-terminal"
"""The package whose commands, `TERMINAL_COMMANDS`, ask agents. Otherwise it is a plugin like any other."""

TERMINAL_COMMANDS = {"run": "ask an agent one thing", "chat": "talk with an agent"}
