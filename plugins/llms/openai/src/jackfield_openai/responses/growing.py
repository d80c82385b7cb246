"""Assign an answer's events to its items, and forward the items' texts in order."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from jackfield_openai.responses.items import SEPARATOR, Item


class GrowingItem:
    """An item being received.

    Attributes:
        index: The item's position in the answer.
        arrived: The number of characters received as deltas, for `content`, `summary` and `arguments`.
        call_id, name: A call's id and name, each '' until it arrives.
        number: A call's index among the answer's calls, or None until assigned.
        wire: The complete item, or None until it arrives.
    """

    __slots__ = ("arrived", "call_id", "cut", "index", "name", "number", "wire")

    def __init__(self, index: int) -> None:
        self.index = index
        self.arrived: Counter[str] = Counter()
        self.cut: set[str] = set()  # texts whose last delta ended in the middle of a surrogate pair
        self.call_id = ""
        self.name = ""
        self.number: int | None = None
        self.wire: Item | None = None

    def learn(self, call_id: str, name: str) -> tuple[str, str]:
        """Record a call's id and name, and return each if it is new, otherwise ''."""
        new_id, new_name = "" if self.call_id else call_id, "" if self.name else name
        self.call_id += new_id
        self.name += new_name
        return new_id, new_name

    def count(self, where: str, piece: str) -> None:
        """Count the characters of a delta, so that a surrogate pair split between two deltas counts once."""
        self.arrived[where] += len(piece)
        if where in self.cut and "\udc00" <= piece[:1] <= "\udfff":
            self.arrived[where] -= 1
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            self.cut.add(where)
        else:
            self.cut.discard(where)


class Items:
    """The items of an answer, found by id or else by index.

    vLLM has sent events of one item under two indices, and some gateways give an item a new id in each event.
    """

    def __init__(self) -> None:
        self._all: list[GrowingItem] = []
        self._by_id: dict[object, GrowingItem] = {}
        self._at_index: dict[object, GrowingItem] = {}
        self.calls = 0

    def of(self, event: Mapping[str, Any]) -> GrowingItem:
        """Return the item of an event, creating it if it was not announced."""
        item_id, index = event.get("item_id"), event.get("output_index")
        return self._find(item_id, index) or self.begin(item_id, index)

    def begin(self, item_id: object, index: object) -> GrowingItem:
        """Add an announced item, and return it."""
        item = GrowingItem(index if isinstance(index, int) else len(self._all))
        self._all.append(item)
        if item_id is not None:
            self._by_id[item_id] = item
        if index is not None:
            self._at_index[index] = item
        return item

    def unfinished(self, item_id: object, index: object) -> GrowingItem:
        """Return the item that has just been completed, creating it if it was not announced."""
        item = self._find(item_id, index)
        return item if item is not None and item.wire is None else self.begin(item_id, index)

    def missing(self, output: Sequence[Item]) -> list[tuple[GrowingItem, Item]]:
        """Return the items of a complete answer that have not arrived completely."""
        if len(self.output()) >= len(output):
            return []
        candidates = [(self._find(wire.get("id"), index), index, wire) for index, wire in enumerate(output)]
        return [
            (self.unfinished(wire.get("id"), index), wire)
            for item, index, wire in candidates
            if item is None or item.wire is None or item.wire["type"] != wire["type"]
        ]

    def number_of_call(self, item: GrowingItem) -> int:
        """Return the index of a call among the answer's calls."""
        if item.number is None:
            item.number = self.calls
            self.calls += 1
        return item.number

    def output(self) -> list[Item]:
        """Return the complete items, in order."""
        return [item.wire for item in sorted(self._all, key=lambda item: item.index) if item.wire is not None]

    def _find(self, item_id: object, index: object) -> GrowingItem | None:
        by_id = self._by_id.get(item_id) if item_id is not None else None
        return by_id or (self._at_index.get(index) if index is not None else None)


class Channel:
    """Forwards the texts of possibly interleaved items one item at a time, separating parts by a blank line."""

    def __init__(self) -> None:
        self._waiting: deque[GrowingItem] = deque()  # in order of arrival; the first one's text is forwarded
        self._held: dict[GrowingItem, list[tuple[object, str]]] = {}
        self._ended: set[GrowingItem] = set()
        self._last_part: object = None

    def begin(self, item: GrowingItem) -> None:
        """Queue an announced item."""
        if item not in self._held:
            self._ended.discard(item)
            self._held[item] = []
            self._waiting.append(item)

    def say(self, item: GrowingItem, part: object, text: str) -> str:
        """Accept text of an item, and return the text that can be forwarded now, or '' if it was buffered.

        If `part` is None, the text continues the last part.

        Raises:
            TypeError: `text` is not a string.
        """
        if not isinstance(text, str):
            raise TypeError(f"expected a string, got {type(text).__name__}")
        if not text:
            return ""
        self.begin(item)
        if self._waiting[0] is item:
            return self._spaced(part, text)
        self._held[item].append((part, text))
        return ""

    def end(self, item: GrowingItem) -> str:
        """End an item, and return the buffered text that can be forwarded now."""
        self._ended.add(item)
        released = []
        while self._waiting and self._waiting[0] in self._ended:
            del self._held[self._waiting.popleft()]
            if self._waiting:
                following = self._held[self._waiting[0]]
                released += [self._spaced(part, text) for part, text in following]
                following.clear()
        return "".join(released)

    def end_all(self) -> str:
        """End all items, and return the remaining text."""
        return "".join([self.end(item) for item in list(self._waiting)])

    def _spaced(self, part: object, text: str) -> str:
        if part is None or self._last_part in (None, part):
            self._last_part = part or self._last_part
            return text
        self._last_part = part
        return SEPARATOR + text
