"""Collect what code prints, displays and raises, and format it for a model. Memory use is bounded throughout."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from jackfield.errors import UnsupportedInputError
from jackfield.messages import ContentItem
from jackfield_backends.images import decode_image

FINISHED = "Finished execution."
PLOTS = ("matplotlib", "numpy", "pandas")
"""The packages in the `plots` extra."""
TIMED_OUT = "Timeout: Code execution exceeded the time limit."

_MAX_IMAGE_CHARS = 8_000_000  # of base64, which is 6 MB; no provider accepts a larger image
_MAX_IMAGES_CHARS = 24_000_000  # of all images in a result
_MAX_BLOCKS = 200  # in a result, half of them first and half last; their fences and titles take space as well
_IMAGE_TYPES = ("image/png", "image/jpeg")
_STREAMS = ("stdout", "stderr")
_BACKTICKS = re.compile(r"`{3,}")
# Colours and cursor movements, window titles and links, and two-character sequences.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


@dataclass(slots=True)
class _Piece:
    """Text within a block. Consecutive output to one stream forms a block; any other message is its own block."""

    block: int
    kind: str
    text: str


class Output:
    """Collects the messages of an execution. Text beyond `max_chars` is cut from the middle.

    Attributes:
        received_chars: The number of characters received, including images and discarded text.
        images: Data URIs, in order of arrival.
        missing: The package from `PLOTS` that the code failed to import, or '' if there is none.
    """

    def __init__(self, *, max_chars: int = 20_000, max_images: int = 8) -> None:
        self.received_chars = 0
        self.images: list[str] = []
        self.missing = ""
        self._max_images = max_images
        self._images_chars = 0
        self._head_room = max_chars // 2
        self._tail_limit = max_chars - self._head_room
        self._head: deque[_Piece] = deque()
        self._tail: deque[_Piece] = deque()
        self._tail_chars = 0
        self._left_out = 0
        self._block = 0
        self._kind = ""

    def add(self, message_type: str, content: Mapping[str, object]) -> None:
        """Add a message from the kernel's iopub channel. Message types without visible output are ignored."""
        match message_type:
            case "stream":
                self._add_text("stderr" if content.get("name") == "stderr" else "stdout", _text(content.get("text")))
            case "execute_result":
                self._add_data("execute_result", content.get("data"))
            case "display_data" | "update_display_data":
                self._add_data("display_data", content.get("data"))
            case "error":
                self.missing = _missing(content) or self.missing
                self._add_text("error", _error_text(content))

    def text(self, *notes: str) -> str:
        """Return the blocks followed by the notes, separated by blank lines, or `FINISHED` if there are none."""
        parts = [*self._blocks(), *notes]
        return "\n\n".join(parts) or FINISHED

    def content(self, *notes: str) -> str | list[ContentItem]:
        """Return the text, or a list of text and image items if there are images."""
        text = self.text(*notes)
        if not self.images:
            return text
        return [ContentItem(text=text), *(ContentItem(image=image) for image in self.images)]

    def _add_data(self, kind: str, shown: object) -> None:
        if not isinstance(shown, Mapping):
            return
        text = _text(shown.get("text/plain"))
        image_type = next((media_type for media_type in _IMAGE_TYPES if media_type in shown), None)
        if image_type:
            problem = self._add_image(_text(shown[image_type]))
            text = "\n".join(filter(None, (text or "<image>", problem)))
        self._add_text(kind, text)

    def _add_image(self, encoded: str) -> str:
        encoded = "".join(encoded.split())
        self.received_chars += len(encoded)
        if len(self.images) >= self._max_images:
            return f"[image omitted: one call returns at most {self._max_images} images]"
        if not encoded or len(encoded) > _MAX_IMAGE_CHARS:
            return "[image omitted: too large; draw it at a lower resolution]"
        if self._images_chars + len(encoded) > _MAX_IMAGES_CHARS:
            return "[image omitted: the images are too large in total; draw them at a lower resolution]"
        try:  # the label comes from the code, which may claim anything
            image = decode_image(encoded)
        except UnsupportedInputError as error:
            return f"[image omitted: {error}]"
        self._images_chars += len(encoded)
        self.images.append(image.data_uri)
        return ""

    def _add_text(self, kind: str, text: str) -> None:
        if not text:
            return
        if kind != self._kind or kind not in _STREAMS:
            self._block += 1
            self._kind = kind
            if self._block > _MAX_BLOCKS // 2:
                self._head_room = 0
        self.received_chars += len(text)
        head, rest = text[: self._head_room], text[self._head_room :]
        self._head_room -= len(head)
        _append(self._head, _Piece(self._block, kind, head))
        tail = rest[-self._tail_limit :]
        self._left_out += len(rest) - len(tail)
        self._tail_chars += len(tail)
        _append(self._tail, _Piece(self._block, kind, tail))
        self._shorten_tail()

    def _shorten_tail(self) -> None:
        while self._tail_chars > self._tail_limit or len(self._tail) > _MAX_BLOCKS // 2:
            oldest = self._tail[0]
            too_many = len(self._tail) > _MAX_BLOCKS // 2
            cut = len(oldest.text) if too_many else min(len(oldest.text), self._tail_chars - self._tail_limit)
            oldest.text = oldest.text[cut:]
            self._tail_chars -= cut
            self._left_out += cut
            if not oldest.text:
                self._tail.popleft()

    def _blocks(self) -> list[str]:
        pieces = [*self._head, *self._tail]
        if self._left_out:
            first = self._tail[0]
            note = f"\n[… {self._left_out} characters omitted …]\n"
            pieces.insert(len(self._head), _Piece(first.block, first.kind, note))
        blocks = []
        for _, group in groupby(pieces, key=lambda piece: piece.block):
            parts = list(group)
            text = clean_text("".join(piece.text for piece in parts)).removesuffix("\n")
            if text:
                blocks.append(f"{parts[0].kind}:\n\n{fenced(text)}")
        return blocks


def fenced(text: str) -> str:
    """Wrap a text in backtick fences that are longer than any run of backticks in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def clean_text(text: str) -> str:
    """Return a text as a terminal would show it: escape sequences removed, overwritten lines in their final state."""
    text = _ANSI.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    # A lone surrogate cannot be encoded, and so cannot be sent anywhere.
    return text.encode("utf-8", "replace").decode("utf-8")


def _append(pieces: deque[_Piece], piece: _Piece) -> None:
    if not piece.text:
        return
    if pieces and pieces[-1].block == piece.block:
        pieces[-1].text += piece.text
    else:
        pieces.append(piece)


def _missing(content: Mapping[str, object]) -> str:
    """Return the package from `PLOTS` whose absence caused an error, or ''."""
    if _text(content.get("ename")) not in ("ModuleNotFoundError", "ImportError"):
        return ""
    match = re.search(r"No module named '(\w+)'", _text(content.get("evalue")))
    return match[1] if match and match[1] in PLOTS else ""


def _error_text(content: Mapping[str, object]) -> str:
    traceback = content.get("traceback")
    if isinstance(traceback, Sequence) and not isinstance(traceback, str) and traceback:
        return "\n".join(_text(part).removesuffix("\n") for part in traceback)
    return f"{_text(content.get('ename'))}: {_text(content.get('evalue'))}"


def _text(value: object) -> str:
    # The code can forge its kernel's messages, so a text may be any value.
    return value if isinstance(value, str) else ""
