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
    """A command: its argument, its help text, and the function that runs it.

    `act` gets the conversation, the text typed after the name, and a function that prints a line of any content.
    """

    takes: str
    help: str
    act: Callable[[Conversation, str, Say], None]


class LeaveError(Exception):
    """The user wants to leave."""


def obey(line: str, conversation: Conversation, say: Say) -> None:
    """Run a line that begins with a slash; errors are printed.

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
    say("Enter sends, Alt-Enter starts a new line, Tab completes, Ctrl-R searches the history.")
    say("Ctrl-C clears the line or stops an answer, Ctrl-D exits.")


def _tools(conversation: Conversation, _rest: str, say: Say) -> None:
    agent = conversation.agent
    if not (agent.function_map or agent.toolsets):
        say("no tools; jackfield chat -t NAME gives it some")
        return
    told = {line.partition(":")[0]: line for line in lines_of_tools(agent)}
    for name in agent.function_map:
        say(told.get(f"tool {printable(name)}", f"tool {name}"))
    for one in agent.toolsets:
        say(f"set {printable(one.name)}: it has tools of its own for each run")


def _files(conversation: Conversation, _rest: str, say: Say) -> None:
    listed = {
        "document": conversation.agent.files,
        "goes with the next question": map(basename_of, conversation.attachments),
        "made": conversation.screen.made.kept,
    }
    lines = [f"{what}: {name}" for what, names in listed.items() for name in names]
    for line in lines or ["no files; jackfield chat -f PATH gives it documents, /attach PATH a picture or a file"]:
        say(line)


def _attach(conversation: Conversation, rest: str, say: Say) -> None:
    if not rest:
        say("what should be attached? /attach PATH or URL")
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
    say(f"saved {path}" + ("" if is_text else f"; to continue: jackfield chat --resume {path}"))


def _undo(conversation: Conversation, _rest: str, say: Say) -> None:
    text = " ".join(conversation.undo().split())
    say(f"undone: {text[:70]}{'…' if len(text) > 70 else ''}" if text else "there is nothing to undo")


def _clear(conversation: Conversation, _rest: str, say: Say) -> None:
    conversation.clear()
    say("the conversation was cleared")


def _exit(_conversation: Conversation, _rest: str, _say: Say) -> None:
    raise LeaveError


COMMANDS: Mapping[str, Slash] = {
    "/help": Slash("", "show this list", _help),
    "/tools": Slash("", "list the tools, and what they can do to your machine", _tools),
    "/files": Slash("", "list the documents, the attachments, and the files that were made", _files),
    "/attach": Slash("PATH", "attach a picture, sound or file to the next question", _attach),
    "/model": Slash("[BACKEND:MODEL]", "show the model, or switch to another one", _model),
    "/usage": Slash("", "show the tokens, cost and time of this chat", _usage),
    "/save": Slash("[FILE]", "save the conversation, as Markdown if FILE ends in .md", _save),
    "/undo": Slash("", "undo the last question and its answer", _undo),
    "/clear": Slash("", "clear the conversation", _clear),
    "/exit": Slash("", "exit the chat", _exit),
}
_ALIASES = {"/reset": "/clear", "/quit": "/exit", "/?": "/help"}
