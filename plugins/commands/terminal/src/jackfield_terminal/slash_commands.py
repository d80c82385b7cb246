"""Implement the commands of a chat, which start with a slash and are never sent to a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

from jackfield.cli import escape_line
from jackfield.errors import JackfieldError
from jackfield.messages import basename_of
from jackfield.plurals import format_count
from jackfield_terminal.conversation import Conversation
from jackfield_terminal.inputs import make_attachment
from jackfield_terminal.screen import describe_tools


class Say(Protocol):
    """Prints arbitrary text. If the text must be wrapped, continuation lines start with `indent`."""

    def __call__(self, text: str, indent: str = ..., /) -> None:
        """Print the text."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command with its argument, its help text and the function that runs it.

    `run` receives the conversation, the text after the command's name, and a function that prints text.
    """

    argument: str
    help: str
    run: Callable[[Conversation, str, Say], None]


class LeaveError(Exception):
    """Raised to leave the chat."""


def run_command(line: str, conversation: Conversation, say: Say) -> None:
    """Run a command line that starts with a slash. Errors are printed.

    Raises:
        LeaveError: The user leaves the chat.
    """
    name, _, rest = line.partition(" ")
    command = COMMANDS.get(_ALIASES.get(name, name))
    if command is None:
        similar = get_close_matches(name, [*COMMANDS, *_ALIASES], n=1, cutoff=0.5)
        suggestion = f": did you mean {similar[0]}?" if similar else ";"
        say(
            f"unknown command {name}{suggestion} /help lists the commands. To "
            "send the line as text, put a space before it"
        )
        return
    try:
        command.run(conversation, rest.strip(), say)
    except JackfieldError as error:
        say(str(error))


def _help(_conversation: Conversation, _rest: str, say: Say) -> None:
    for name, command in COMMANDS.items():
        say(f"{f'{name} {command.argument}'.rstrip():<22} {command.help}", " " * 23)
    say("Enter sends, Alt-Enter starts a new line, Tab completes, Ctrl-R searches the history.")
    say("Ctrl-C clears the line or stops an answer, Ctrl-D exits.")


def _tools(conversation: Conversation, _rest: str, say: Say) -> None:
    agent = conversation.agent
    if not (agent.function_map or agent.toolsets):
        say("no tools; to add one, run: jackfield chat -t NAME")
        return
    described = {line.partition(":")[0]: line for line in describe_tools(agent)}
    for name in agent.function_map:
        say(described.get(f"tool {escape_line(name)}", f"tool {name}"))
    for toolset in agent.toolsets:
        say(f"toolset {escape_line(toolset.name)}: its tools are created for each run")


def _files(conversation: Conversation, _rest: str, say: Say) -> None:
    lines = [
        *(f"document: {name}" for name in conversation.agent.files),
        *(f"attached to the next question: {basename_of(name)}" for name in conversation.attachments),
        *(f"created: {path}" for path in conversation.screen.output_files.saved),
    ]
    for line in lines or ["no files; to add some, run: jackfield chat -f PATH; to attach a file, type /attach PATH"]:
        say(line)


def _attach(conversation: Conversation, rest: str, say: Say) -> None:
    if not rest:
        say("no file: type /attach PATH or URL")
        return
    make_attachment(rest)  # raises an error if the file does not exist
    conversation.attachments.append(rest)
    say(f"{basename_of(rest)} will be attached to the next question")


def _model(conversation: Conversation, rest: str, say: Say) -> None:
    if rest:
        conversation.use_model(rest)
    say(conversation.model)


def _usage(conversation: Conversation, _rest: str, say: Say) -> None:
    summary = conversation.screen.total
    calls, messages = format_count(summary.calls, "tool call"), format_count(len(conversation.history), "message")
    say(f"{', '.join(summary.figures())}, {calls}, {messages}")
    for row in conversation.agent.model.facts.prices:
        if row.valid_until is None:
            say(f"prices from {row.valid_from}: {row.source or 'your own'}")


def _save(conversation: Conversation, rest: str, say: Say) -> None:
    path = Path(rest or time.strftime("chat-%Y%m%d-%H%M%S.json")).expanduser()
    conversation.save(path)
    if path.suffix.lower() == ".md":
        say(f"saved {path}")
    else:
        say(f"saved {path}; to continue, run: jackfield chat --resume {path}")


def _undo(conversation: Conversation, _rest: str, say: Say) -> None:
    text = " ".join(conversation.undo().split())
    say(f"undone: {text[:70]}{'…' if len(text) > 70 else ''}" if text else "there is nothing to undo")


def _clear(conversation: Conversation, _rest: str, say: Say) -> None:
    conversation.clear()
    say("conversation cleared")


def _exit(_conversation: Conversation, _rest: str, _say: Say) -> None:
    raise LeaveError


COMMANDS: Mapping[str, SlashCommand] = {
    "/help": SlashCommand("", "show this list", _help),
    "/tools": SlashCommand("", "list the tools, and their effects on your machine", _tools),
    "/files": SlashCommand("", "list the documents, the attachments, and the created files", _files),
    "/attach": SlashCommand("PATH", "attach an image, audio or other file to the next question", _attach),
    "/model": SlashCommand("[BACKEND:MODEL]", "show the model, or switch to another one", _model),
    "/usage": SlashCommand("", "show the tokens, cost and time of this chat", _usage),
    "/save": SlashCommand("[FILE]", "save the conversation; as Markdown if FILE ends in .md", _save),
    "/undo": SlashCommand("", "undo the last question and its answer", _undo),
    "/clear": SlashCommand("", "clear the conversation", _clear),
    "/exit": SlashCommand("", "exit the chat", _exit),
}
_ALIASES = {"/reset": "/clear", "/quit": "/exit", "/?": "/help"}
