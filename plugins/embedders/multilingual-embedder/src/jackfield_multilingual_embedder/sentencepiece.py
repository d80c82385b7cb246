"""Tokenize text with a SentencePiece unigram model."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

UNKNOWN, BEGIN, END = 0, 1, 2
_BLANK = "\N{LOWER ONE EIGHTH BLOCK}"  # begins a word
_PENALTY = 10.0  # penalty of an unknown character relative to the rarest piece
_IMPOSSIBLE = float("-inf")
_IS_PREFIX = -1
_NORMAL = b"\x01"
# No rule of a character map begins with two of these, so they stay as they are if another one follows.
_PLAIN = re.compile(rb"[ -~]+(?![\x80-\xff])")

# The field numbers that are read from the file's Protocol Buffers messages.
_PIECE, _SPECIFICATION = 1, 3
_TEXT, _SCORE, _TYPE = 1, 2, 3
_CHARACTER_MAP = 2


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A SentencePiece model.

    Attributes:
        pieces: The pieces in order of their numbers. None is a control piece that never results from text.
        scores: The log probability of each piece.
        character_map: The compiled character normalisation rules: a double array, then the replacements.
    """

    pieces: tuple[str | None, ...]
    scores: tuple[float, ...]
    character_map: bytes


def parse_model(model: bytes) -> Vocabulary:
    """Parse a model file, which must be complete."""
    pieces: list[str | None] = []
    scores: list[float] = []
    character_map = b""
    for field, value in _fields(model):
        if field == _PIECE:
            piece = dict(_fields(value))
            is_normal = piece.get(_TYPE, _NORMAL) == _NORMAL
            pieces.append(piece[_TEXT].decode() if is_normal else None)
            scores.append(struct.unpack("<f", piece.get(_SCORE, bytes(4)))[0])
        elif field == _SPECIFICATION:
            character_map = dict(_fields(value))[_CHARACTER_MAP]
    return Vocabulary(tuple(pieces), tuple(scores), character_map)


class SentencePieces:
    """Splits text into the most probable sequence of pieces.

    Source: Kudo, Subword Regularization, ACL 2018; Kudo & Richardson, SentencePiece, EMNLP 2018.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._characters = _CharacterMap(vocabulary.character_map)
        self._scores = vocabulary.scores
        self._unknown = min(vocabulary.scores) - _PENALTY
        # With all prefixes of pieces, so that a search ends as soon as no longer piece can match.
        self._numbers: dict[str, int] = {}
        for number, piece in enumerate(vocabulary.pieces):
            if piece:
                for end in range(1, len(piece)):
                    self._numbers.setdefault(piece[:end], _IS_PREFIX)
                self._numbers[piece] = number

    def split(self, text: str) -> list[int]:
        """Return the numbers of the pieces, enclosed in those for the beginning and end of a text."""
        words = [word for word in self._characters.normalise(text).split(" ") if word]
        return [BEGIN, *self._best("".join(_BLANK + word for word in words)), END]

    def _best(self, text: str) -> list[int]:
        """Return the pieces with the highest total score. Ties are decided in favour of the longest last piece.

        Consecutive unknown characters become a single piece.
        """
        numbers, scores = self._numbers, self._scores
        best = [0.0] + [_IMPOSSIBLE] * len(text)  # the sum of scores up to each position
        last: list[tuple[int, int]] = [(0, UNKNOWN)] * (len(text) + 1)  # start and number of the piece that ends there
        for start in range(len(text)):
            so_far = best[start]
            end = start + 1
            number = numbers.get(text[start:end])
            if number is None or number == _IS_PREFIX:
                score = so_far + self._unknown
                if score > best[end]:
                    best[end], last[end] = score, (start, UNKNOWN)
            while number is not None:
                if number != _IS_PREFIX:
                    score = so_far + scores[number]
                    if score > best[end]:
                        best[end], last[end] = score, (start, number)
                end += 1
                if end > len(text):
                    break
                number = numbers.get(text[start:end])
        pieces: list[int] = []
        end = len(text)
        while end:
            end, number = last[end]
            if not (number == UNKNOWN and pieces and pieces[-1] == UNKNOWN):
                pieces.append(number)
        return pieces[::-1]


class _CharacterMap:
    """Replaces characters such as ligatures and full-width letters, using the longest matching rule.

    The rules are a byte trie in darts-clone's format: 32-bit integers that hold a label, the offset of the children,
    and a flag for the end of a rule.
    """

    def __init__(self, compiled: bytes) -> None:
        (size,) = struct.unpack_from("<I", compiled)
        self._units = struct.unpack_from(f"<{size // 4}I", compiled, 4)
        self._replacements = compiled[4 + size :]

    def normalise(self, text: str) -> str:
        """Apply the rules to a text. Lone surrogates become question marks."""
        old = text.encode("utf-8", "replace")
        new = bytearray()
        place = 0
        while place < len(old):
            if plain := _PLAIN.match(old, place):
                new += plain[0]
                place = plain.end()
                continue
            length, replacement = self._longest(old, place)
            if not length:
                length = _length_of_character(old[place])
                replacement = old[place : place + length]
            new += replacement
            place += length
        return new.decode("utf-8", "replace")

    def _longest(self, text: bytes, start: int) -> tuple[int, bytes]:
        """Return the number of bytes that the longest rule matches, and their replacement. Without a match, it is 0."""
        units = self._units
        length, value = 0, 0
        node = _children(units[0])
        for place in range(start, len(text)):
            node ^= text[place]
            unit = units[node]
            if unit & 0x8000_00FF != text[place]:
                break
            node ^= _children(unit)
            if unit & 0x100:
                length, value = place + 1 - start, units[node] & 0x7FFF_FFFF
        if not length:
            return 0, b""
        return length, self._replacements[value : self._replacements.index(0, value)]


def _children(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)


def _length_of_character(first_byte: int) -> int:
    return 1 + (first_byte >= 0xC0) + (first_byte >= 0xE0) + (first_byte >= 0xF0)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each protobuf field. Integers are left encoded."""
    place = 0
    while place < len(message):
        key, place = _read_number(message, place)
        match key & 7:
            case 0:
                _, end = _read_number(message, place)
            case 2:
                size, place = _read_number(message, place)
                end = place + size
            case kind:
                end = place + {1: 8, 5: 4}[kind]
        yield key >> 3, message[place:end]
        place = end


def _read_number(message: bytes, place: int) -> tuple[int, int]:
    """Read a varint, and return its value and the position after it."""
    number = shift = 0
    while message[place] >= 128:
        number |= (message[place] & 127) << shift
        shift += 7
        place += 1
    return number | message[place] << shift, place + 1
