"""Messages of Outlook, written for the tests that read them: no library writes them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

FREE, END, FAT_SECTOR, NONE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFF
Tree = Mapping[str, "bytes | Tree"]
MakeFile = Callable[[Tree], bytes]


@dataclass
class _Entry:
    name: str
    kind: int  # 1 a storage, 2 a stream, 5 the root
    data: bytes = b""
    child: int = NONE
    sibling: int = NONE
    start: int = END


@dataclass
class _Writer:
    entries: list[_Entry] = field(default_factory=list)

    def add(self, tree: Tree) -> int:
        """Add the entries of a storage; the number of the first. Names are in the order of the format."""
        first = NONE
        for name in sorted(tree, key=lambda name: (len(name), name.upper()), reverse=True):
            content = tree[name]
            number = len(self.entries)
            entry = _Entry(name, 2, content) if isinstance(content, bytes) else _Entry(name, 1)
            self.entries.append(entry)
            if not isinstance(content, bytes):
                entry.child = self.add(content)
            entry.sibling, first = first, number
        return first


def make_ole(tree: Tree) -> bytes:
    """An OLE file ([MS-CFB], version 3) with these storages and streams."""
    writer = _Writer([_Entry("Root Entry", 5)])
    writer.entries[0].child = writer.add(tree)
    mini, mini_fat, fat, sectors = bytearray(), list[int](), list[int](), list[bytes]()

    def chain(data: bytes) -> int:
        """Add a stream of sectors; the number of the first."""
        pieces = [data[place : place + 512].ljust(512, b"\0") for place in range(0, len(data), 512)]
        first = len(sectors)
        sectors.extend(pieces)
        fat.extend([*range(first + 1, first + len(pieces)), END] if pieces else [])
        return first if pieces else END

    for entry in writer.entries:
        if entry.kind == 2 and len(entry.data) >= 4096:
            entry.start = chain(entry.data)
        elif entry.kind == 2 and entry.data:
            entry.start, count = len(mini) // 64, -(-len(entry.data) // 64)
            mini += entry.data.ljust(64 * count, b"\0")
            mini_fat += [*range(entry.start + 1, entry.start + count), END]
    root = writer.entries[0]
    root.data, root.start = bytes(mini), chain(bytes(mini))
    first_mini_fat = chain(struct.pack(f"<{len(mini_fat)}I", *mini_fat).ljust(-(-len(mini_fat) // 128) * 512, b"\xff"))
    directory = b"".join(_pack(entry) for entry in writer.entries)
    first_directory = chain(directory.ljust(-(-len(directory) // 512) * 512, b"\0"))
    count = 1
    while count * 128 < len(fat) + count:
        count += 1
    numbers = range(len(sectors), len(sectors) + count)
    table = [*fat, *[FAT_SECTOR] * count]
    table += [FREE] * (128 * count - len(table))
    header = struct.pack(
        "<8s16sHHHHH6sIIIIIIIII109I", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", bytes(16), 0x3E, 3, 0xFFFE, 9, 6, bytes(6),
        0, count, first_directory, 0, 4096, first_mini_fat, -(-len(mini_fat) // 128), END, 0,
        *numbers, *[FREE] * (109 - count),
    )  # fmt: skip
    return header + b"".join(sectors) + struct.pack(f"<{len(table)}I", *table)


def _pack(entry: _Entry) -> bytes:
    name = f"{entry.name}\0".encode("utf-16-le")
    return struct.pack(
        "<64sHBBIII16sIQQIQ", name, len(name), entry.kind, 1, NONE, entry.sibling, entry.child, bytes(16), 0, 0, 0,
        entry.start, len(entry.data),
    )  # fmt: skip


def properties(
    header_bytes: int, values: Mapping[int, int] | None = None, texts: Mapping[int, str | bytes] | None = None
) -> bytes:
    """The stream of properties: numbers as their values, texts and bytes as their lengths."""
    entries = [struct.pack("<HHIQ", 3, identifier, 6, value) for identifier, value in (values or {}).items()]
    for identifier, text in (texts or {}).items():
        kind, size = (0x1F, 2 * len(text) + 2) if isinstance(text, str) else (0x102, len(text))
        entries.append(struct.pack("<HHIQ", kind, identifier, 6, size))
    return bytes(header_bytes) + b"".join(entries)


def make_message(
    texts: Mapping[int, str | bytes],
    *attachments: Tree,
    values: Mapping[int, int] | None = None,
    header_bytes: int = 32,
) -> Tree:
    """The storage of a message with these properties."""
    tree: dict[str, bytes | Tree] = {"__properties_version1.0": properties(header_bytes, values, texts)}
    for identifier, text in texts.items():
        wide = isinstance(text, str)
        tree[f"__substg1.0_{identifier:04X}{'001F' if wide else '0102'}"] = (
            text.encode("utf-16-le") if isinstance(text, str) else text
        )
    for number, attachment in enumerate(attachments):
        tree[f"__attach_version1.0_#{number:08X}"] = {"__properties_version1.0": properties(8), **attachment}
    return tree


@pytest.fixture
def ole() -> MakeFile:
    return make_ole


@pytest.fixture
def message() -> Callable[..., Tree]:
    return make_message
