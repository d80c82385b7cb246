"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from typing import ClassVar

from jackfield_testkit.suites import ParserSuite, PluginSuite


def zipped(files: Mapping[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def tarred(files: Mapping[str, bytes], mode: str = "w") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


def gzip_stream(*, mebibytes: int) -> bytes:
    """Return zeros in one stream that is cut off, in a hundredth of the time that compressing all of them takes."""
    compressor = zlib.compressobj(wbits=31)
    start, block = (compressor.compress(bytes(2**20)) + compressor.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return start + block * (mebibytes - 1)


FILES = {"a/tea.txt": b"Green tea.", "水.md": "# 水".encode()}
NAMES = ("a/tea.txt (10 bytes)", "水.md (5 bytes)")
ONE_LIST = "the files are listed in one block, and their texts are read by other parsers"


class TestPlugin(PluginSuite):
    dist = "jackfield-archive"


class TestZip(ParserSuite):
    component = "jackfield-archive/zip"
    samples: ClassVar = {"tea.zip": (zipped(FILES), NAMES)}
    one_block = ONE_LIST
    unreadable: ClassVar = {
        "text.zip": b"just a text",
        "nothing.zip": zipped({}),
        "folders.zip": zipped({"a/": b""}),
        "hidden.zip": zipped({".DS_Store": b"a", "__MACOSX/b": b"b"}),
        "locked.zip": zipped(FILES).replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"),
    }

    @property
    def hostile(self) -> Mapping[str, bytes]:
        """Bombs, which are made only where they are needed."""
        return {
            "bomb.zip": zipped({"a.txt": bytes(300 * 2**20)}),
            "many.zip": zipped({f"{number}.txt": b"" for number in range(10_001)}),
            "names.zip": zipped({f"{'a/' * 5000}{number}.txt": b"a" for number in range(100)}),
        }

    @staticmethod
    def make_file(count: int) -> bytes:
        return zipped({f"{number}.txt": b"a" * 1000 for number in range(count)})


class TestTar(ParserSuite):
    component = "jackfield-archive/tar"
    samples: ClassVar = {
        "tea.tar": (tarred(FILES), NAMES),
        "tea.tgz": (tarred(FILES, "w:gz"), NAMES),
        "tea.tar.bz2": (tarred(FILES, "w:bz2"), NAMES),
        "tea.txz": (tarred(FILES, "w:xz"), NAMES),
        "tea.txt.gz": (gzip.compress(b"Green tea.", mtime=0), "compressed file (10 bytes)"),
    }
    one_block = ONE_LIST
    unreadable: ClassVar = {
        "text.tar": b"just a text" * 100,
        "nothing.tar": tarred({}),
        "cut.gz": gzip.compress(b"Green tea.")[:-9],
        "folders.tar": tarred({".hidden/a": b""}),
    }

    @property
    def hostile(self) -> Mapping[str, bytes]:
        """Bombs, which are made only where they are needed."""
        return {
            "bomb.gz": gzip_stream(mebibytes=300),
            "bomb.bz2": bz2.compress(bytes(2**20)) * 300,
            "bomb.xz": lzma.compress(bytes(2**20), preset=0) * 300,
            "streams.gz": gzip.compress(b"", mtime=0) * 50_000,
            "many.tgz": tarred({f"{number}.txt": b"" for number in range(10_001)}, "w:gz"),
        }

    @staticmethod
    def make_file(count: int) -> bytes:
        return tarred({f"{number}.txt": b"a" * 1000 for number in range(count)})
