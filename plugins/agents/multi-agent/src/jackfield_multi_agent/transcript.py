"""A conversation of several agents, and each agent's view of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jackfield.agents import open_calls
from jackfield.media import notes_of
from jackfield.messages import ASSISTANT, FUNCTION, SYSTEM, USER, ContentItem, Message

STOP = "[STOP]"
_LETTER = r"[A-Za-z0-9_-]"


class Transcript:
    """The speeches of a conversation. Each message is read once for each participant.

    Args:
        names: The names of all agents in it.
        messages: The conversation so far; an assistant's message belongs to the agent that it names.
    """

    def __init__(self, names: Iterable[str], messages: Iterable[Message]) -> None:
        self._views = {name: _View(name) for name in names}
        self._first = next(iter(self._views), "")
        self._caller = ""
        self.system_text = ""
        self.last_speaker = ""
        self.lines: list[str] = []
        given = list(messages)
        self._waiting = caller_of_open_calls(given) or ""
        for message in given:
            self.add(message)

    def add(self, message: Message) -> None:
        """Add the next message."""
        if message.role == SYSTEM:
            self.system_text = message.get_text_content()
            return
        speaker = self._caller if message.role == FUNCTION else self._speaker(message)
        self._caller = speaker
        if speaker in self._views:
            self.last_speaker = speaker
        if line := _line(message, speaker):
            self.lines.append(line)
        for view in self._views.values():
            view.add(message, speaker)

    def _speaker(self, message: Message) -> str:
        name = message.name or ""
        if message.role != ASSISTANT or name in self._views:
            return name
        # A call of an assistant without a name must belong to some agent; with a single agent, everything does. An
        # assistant with another name had the conversation before, but if its calls are pending, some agent must make
        # them.
        is_ours = name == self._waiting if name else len(self._views) == 1
        return self._first if is_ours or (message.function_call and not name) else name

    def seen_by(self, name: str, cue: str) -> tuple[Message, ...]:
        """Return the conversation as one participant sees it, with the others' texts; `cue` if it spoke last."""
        return self._views[name].messages(cue)


class _View:
    """The conversation as one participant sees it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._done: list[Message] = []
        self._others: list[ContentItem] = []

    def add(self, message: Message, speaker: str) -> None:
        if speaker == self._name and message.role != USER:
            self._end_others()
            self._done.append(message)
        elif _is_speech(message):
            self._others += _said(message, speaker)

    def messages(self, cue: str) -> tuple[Message, ...]:
        self._end_others()
        spoke_last = not self._done or (self._done[-1].role == ASSISTANT and _is_speech(self._done[-1]))
        return (*self._done, Message(USER, cue)) if spoke_last else tuple(self._done)

    def _end_others(self) -> None:
        if not self._others:
            return
        texts = [item.text for item in self._others if item.text is not None]
        if len(texts) == len(self._others):
            self._done.append(Message(USER, "\n".join(texts)))
        else:
            self._done.append(Message(USER, self._others))
        self._others = []


def _line(message: Message, speaker: str) -> str:
    """Return a message as a line of text, with the names of files; '' if it is empty or not for the others."""
    said = [message.get_text_content(), *notes_of(message.items)] if _is_speech(message) else []
    text = " ".join(said).strip()
    return f"{speaker}: {text}" if text and speaker else text


def _said(message: Message, speaker: str) -> list[ContentItem]:
    """Return a speech with its speaker's name before it."""
    items = [item for item in message.items if _may_be_shown(item, message)]
    if not speaker or not items:
        return items
    if items[0].text is None:
        return [ContentItem(text=f"{speaker}:"), *items]
    return [ContentItem(text=f"{speaker}: {items[0].text.strip()}"), *items[1:]]


def _may_be_shown(item: ContentItem, message: Message) -> bool:
    """Return True if others see an item: a path is a file that tools may open, so it must be in a user's message."""
    if item.text is not None:
        return bool(item.text.strip())
    return message.role == USER or (isinstance(item.value, str) and item.value.startswith("data:"))


def _is_speech(message: Message) -> bool:
    return message.role != FUNCTION and not message.function_call


def caller_of_open_calls(messages: Sequence[Message]) -> str | None:
    """Return the name of the agent whose calls are open, '' if it has none; None if no calls are open."""
    if not open_calls(messages):
        return None
    return next((message.name or "" for message in reversed(messages) if message.function_call), "")


def mentioned(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that a text mentions as `@name`, each once, in order: `@alice` does not mention `al`."""
    longest_first = sorted(names, key=len, reverse=True)
    # A lookahead, because the text after a name may also be part of a name.
    found = re.findall(f"@(?=({'|'.join(map(_whole, longest_first))}))", text)
    return list(dict.fromkeys(filter(None, found)))


def named(text: str, names: Sequence[str]) -> str | None:
    """Return the single name that a text is or contains as a word; None if it contains none or several."""
    stripped = text.strip().strip("\"'`*@ .:：。")
    if stripped in names:
        return stripped
    found = [name for name in names if re.search(_whole(name), text)]
    # If one name is part of another, the longer one counts.
    longest = max(found, key=len, default="")
    return longest if longest and all(name in longest for name in found) else None


def _whole(name: str) -> str:
    """Return a pattern for a name without a letter before or after it; Chinese has no such boundaries."""
    before = f"(?<!{_LETTER})" if re.match(_LETTER, name) else ""
    after = f"(?!{_LETTER})" if re.match(_LETTER, name[-1:]) else ""
    return before + re.escape(name) + after
