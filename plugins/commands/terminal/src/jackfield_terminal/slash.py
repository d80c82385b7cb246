"""The commands of a chat, which begin with a slash and are never sent to a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from jackfield.cli import printable
from jackfield.errors import JackfieldError
from jackfield.messages import basename_of
from jackfield_terminal.conversation import Conversation
from jackfield_terminal.given import attachment
from jackfield_terminal.screen import lines_of_tools

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Slash:
    """A command: what it takes, what it is for, and what does it.

    `act` gets the conversation, what was typed behind the name, and what prints a line, which may hold anything.
    """

    takes: str
    help: str
    act: Callable[[Conversation, str, Say], None]


class LeaveError(Exception):
    """Somebody wants to leave."""


def obey(line: str, conversation: Conversation, say: Say) -> None:
    """Do what a line that begins with a slash says; whatever is wrong with it is said.

    Raises:
        LeaveError: The chat is to end.
    """
    name, _, rest = line.partition(" ")
    command = COMMANDS.get(_ALIASES.get(name, name))
    if command is None:
        say(f"there is no command {name}{_near(name)}; /help lists them. To send the line, put a space before it")
        return
    try:
        command.act(conversation, rest.strip(), say)
    except JackfieldError as error:
        say(str(error))


def _near(name: str) -> str:
    found = get_close_matches(name, [*COMMANDS, *_ALIASES], n=1, cutoff=0.5)
    return f": did you mean {found[0]}?" if found else ""


def _help(_conversation: Conversation, _rest: str, say: Say) -> None:
    for name, command in COMMANDS.items():
        say(f"{f'{name} {command.takes}'.rstrip():<22} {command.help}")
    say("Enter sends, Alt-Enter begins a line, Tab completes, Ctrl-R searches what was typed.")
    say("Ctrl-C clears the line or stops an answer, Ctrl-D leaves.")


def _tools(conversation: Conversation, _rest: str, say: Say) -> None:
    agent = conversation.agent
    if not agent.function_map:
        say("no tools; jackfield chat -t NAME gives it some")
        return
    told = {line.partition(":")[0]: line for line in lines_of_tools(agent)}
    for name in agent.function_map:
        say(told.get(f"tool {printable(name)}", f"tool {name}"))


def _files(conversation: Conversation, _rest: str, say: Say) -> None:
    listed = {
        "document": [str(file) for file in conversation.agent.files],
        "goes with the next question": [basename_of(name) for name in conversation.attachments],
        "made": [str(path) for path in conversation.screen.made.kept],
    }
    lines = [f"{what}: {name}" for what, names in listed.items() for name in names]
    for line in lines or ["no files; jackfield chat -f PATH gives it documents, /attach PATH a picture or a file"]:
        say(line)


def _attach(conversation: Conversation, rest: str, say: Say) -> None:
    if not rest:
        say("attach what? /attach PATH or URL")
        return
    attachment(rest)  # what is not there is an error
    conversation.attachments.append(rest)
    say(f"{basename_of(rest)} goes with the next question")


def _model(conversation: Conversation, rest: str, say: Say) -> None:
    if rest:
        conversation.use_model(rest)
    say(conversation.model)


def _usage(conversation: Conversation, _rest: str, say: Say) -> None:
    account = conversation.screen.account
    say(f"{', '.join(account.figures())}, {account.calls} tool calls, {len(conversation.history)} messages")


def _save(conversation: Conversation, rest: str, say: Say) -> None:
    path = Path(rest or time.strftime("chat-%Y%m%d-%H%M%S.json")).expanduser()
    conversation.save(path)
    is_text = path.suffix.lower() == ".md"
    say(f"saved {path}" + ("" if is_text else f"; to go on: jackfield chat --resume {path}"))


def _undo(conversation: Conversation, _rest: str, say: Say) -> None:
    text = " ".join(conversation.undo().split())
    say(f"taken back: {text[:70]}{'…' if len(text) > 70 else ''}" if text else "there is nothing to take back")


def _clear(conversation: Conversation, _rest: str, say: Say) -> None:
    conversation.clear()
    say("what was said is forgotten")


def _exit(_conversation: Conversation, _rest: str, _say: Say) -> None:
    raise LeaveError


COMMANDS: Mapping[str, Slash] = {
    "/help": Slash("", "this list", _help),
    "/tools": Slash("", "the tools, and what they do besides answering", _tools),
    "/files": Slash("", "the documents, attachments, and files that were made", _files),
    "/attach": Slash("PATH", "a picture, sound or file goes with the next question", _attach),
    "/model": Slash("[BACKEND:MODEL]", "the model; or have another one answer from now on", _model),
    "/usage": Slash("", "tokens, cost and time of this chat", _usage),
    "/save": Slash("[FILE]", "write the conversation, as text where FILE ends in .md", _save),
    "/undo": Slash("", "take the last question back, with its answer", _undo),
    "/clear": Slash("", "forget what was said", _clear),
    "/exit": Slash("", "leave", _exit),
}
_ALIASES = {"/reset": "/clear", "/quit": "/exit", "/?": "/help"}
