"""Maintain a conversation between several agents, and each agent's view of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jackfield.agents import open_calls
from jackfield.media import notes_of
from jackfield.messages import ASSISTANT, FUNCTION, SYSTEM, USER, ContentItem, Message

STOP = "[STOP]"
_LETTER = r"[A-Za-z0-9_-]"


class Transcript:
    """The speeches of a conversation, converted once into each participant's view.

    Args:
        names: The names of all participants.
        messages: The conversation so far. Each assistant message belongs to the agent it names.
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
        """Append a message."""
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
        # An unnamed call must belong to some agent; with a single agent, so does every unnamed message. An unknown name
        # belongs to an earlier assistant, but if its calls are pending, some agent must run them.
        is_ours = name == self._waiting if name else len(self._views) == 1
        return self._first if is_ours or (message.function_call and not name) else name

    def seen_by(self, name: str, cue: str) -> tuple[Message, ...]:
        """Return a participant's view of the conversation, ending in `cue` if that participant spoke last."""
        return self._views[name].messages(cue)


class _View:
    """One participant's view of the conversation."""

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
    """Format a message as one line, including file names; '' if it is empty or not meant for others."""
    said = [message.get_text_content(), *notes_of(message.items)] if _is_speech(message) else []
    text = " ".join(said).strip()
    return f"{speaker}: {text}" if text and speaker else text


def _said(message: Message, speaker: str) -> list[ContentItem]:
    """Prefix a speech with its speaker's name."""
    items = [item for item in message.items if _may_be_shown(item, message)]
    if not speaker or not items:
        return items
    if items[0].text is None:
        return [ContentItem(text=f"{speaker}:"), *items]
    return [ContentItem(text=f"{speaker}: {items[0].text.strip()}"), *items[1:]]


def _may_be_shown(item: ContentItem, message: Message) -> bool:
    """Return True if others may see an item.

    Paths are shown only from a user's message, because tools may open the files.
    """
    if item.text is not None:
        return bool(item.text.strip())
    return message.role == USER or (isinstance(item.value, str) and item.value.startswith("data:"))


def _is_speech(message: Message) -> bool:
    return message.role != FUNCTION and not message.function_call


def caller_of_open_calls(messages: Sequence[Message]) -> str | None:
    """Return the name of the agent with pending calls, '' if it is unnamed, or None if no calls are pending."""
    if not open_calls(messages):
        return None
    return next((message.name or "" for message in reversed(messages) if message.function_call), "")


def mentioned(text: str, names: Sequence[str]) -> list[str]:
    """Return each name mentioned as `@name`, in order and without duplicates; `@alice` does not mention `al`."""
    longest_first = sorted(names, key=len, reverse=True)
    # A lookahead, because the text after a name may also be part of a name.
    found = re.findall(f"@(?=({'|'.join(map(_whole, longest_first))}))", text)
    return list(dict.fromkeys(filter(None, found)))


def named(text: str, names: Sequence[str]) -> str | None:
    """Return the only name that occurs in the text as a word, or None if none or several do."""
    found = [name for name in names if re.search(_whole(name), text)]
    # If one name is part of another, the longer one wins.
    longest = max(found, key=len, default="")
    return longest if longest and all(name in longest for name in found) else None


def _whole(name: str) -> str:
    """Return a regex that matches a name as a whole word; Chinese names need no word boundary."""
    before = f"(?<!{_LETTER})" if re.match(_LETTER, name) else ""
    after = f"(?!{_LETTER})" if re.match(_LETTER, name[-1:]) else ""
    return before + re.escape(name) + after
