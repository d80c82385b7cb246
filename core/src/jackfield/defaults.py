"""The core's defaults. No other module in the core names other packages or their components."""

from __future__ import annotations

DEFAULT_CHAIN = (
    "jackfield-system-message/language",
    "jackfield-multimodal/multimodal",
    "jackfield-truncation/truncation",
)
"""The processors that wrap every model if they are installed, by full address.

This is the only exception to "installed is not active". Without it, a long history or a document in a message would be
an error in every first program. Settings can block each of these processors. A processor of the same name that is
enabled or named in code replaces the default.
"""

CALL_FORMAT = "nous"
"""The call format for models without native tool calls."""

COMPATIBLE_SERVER = "openai"
"""The backend to use if only a server address is given."""

FIRST_BACKEND = "jackfield-openai"
"""The package that errors suggest if no backend is installed."""

FIRST_SANDBOX = "jackfield-bubblewrap"
"""The package that errors suggest if no sandbox can be used."""

READER_OF_FILES = "jackfield-multimodal"
"""The package with the default chain's processor that reads attached files with parsers."""

FETCHER = "jackfield-fetch"
"""The package that errors suggest for fetching files from URLs."""

FIRST_PARSER = "jackfield-text"
"""The package that errors suggest for a file whose parser is unknown."""

AGENT_WITH_FILES = "assistant"
"""The agent kind that the command line uses for documents."""

STORE = "sqlite"
"""The store that the command line uses to record runs, if it is installed."""

MANAGER = "jackfield-manage"
"""The package whose commands manage the installation.

If it is proven to be ours, it has two privileges: only a rule that names it can prevent it from loading, and other
packages cannot take the names of its commands.
"""

EXPLAINED_BY = "jackfield_manage.judging.absences:explain_absence"
"""The manager's function that explains why nothing offers a name. It takes the host, the kind and the address."""

TERMINAL = "jackfield-terminal"
"""The package whose commands (`TERMINAL_COMMANDS`) run agents. Otherwise it is an ordinary plugin."""

TERMINAL_COMMANDS = {"run": "ask an agent a single question", "chat": "chat with an agent"}

LOG_OBSERVER = "observer.jackfield-log/log"
"""The observer that `JACKFIELD_LOG` enables."""
