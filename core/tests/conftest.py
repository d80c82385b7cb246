"""What the core's tests share: a folder for distributions, and a way to gather what is asynchronous."""

from __future__ import annotations

import asyncio
import sys
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from jackfield.plugins.host import PluginHost
from jackfield.settings import Settings

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("core", deadline=None)
hypothesis.settings.load_profile("core")

LIGHT_MODULE = """
from pathlib import Path
from jackfield.plugins import ToolSpec, hook

with open({marker!r}, "a") as marker:
    marker.write("imported\\n")
{before}

@hook.tools
def tools():
    return [ToolSpec(name=name, target="{module}:Tool", description="From {module}.") for name in {names!r}]


class Tool:
    pass
"""


class Site:
    """A folder into which distributions are laid as an installer would; it is on `sys.path`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self,
        distribution: str,
        entries: Mapping[str, str] | None = None,
        *,
        version: str = "1.0",
        group: str = "jackfield.v1",
        raw: bytes | None = None,
        modules: Mapping[str, str] | None = None,
    ) -> Path:
        """Install a distribution with entry points (one by one, or the bytes of the file) and modules."""
        metadata = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (metadata / "entry_points.txt").write_bytes(entry_points(entries or {}, group) if raw is None else raw)
        for module, source in (modules or {}).items():
            (self.folder / f"{module}.py").write_text(source)
        return metadata

    def add_tools(self, distribution: str, *names: str, before: str = "") -> str:
        """Install a plugin that offers tools, and writes a line to a file when it is imported; `before` is run then."""
        module = f"{distribution.replace('-', '_')}_light"
        source = LIGHT_MODULE.format(
            marker=str(self.marker(distribution)), before=before, module=module, names=list(names)
        )
        self.add(distribution, {f"tool.{name}": module for name in names}, modules={module: source})
        return module

    def marker(self, distribution: str) -> Path:
        """The file that tells how often the light module of a distribution was imported."""
        return self.folder / f"{distribution}.imported"

    def times_imported(self, distribution: str) -> int:
        """How often it was."""
        marker = self.marker(distribution)
        return len(marker.read_text().splitlines()) if marker.exists() else 0

    def add_zip(self, archive: str, distribution: str, entries: Mapping[str, str]) -> Path:
        """A distribution in a zip file of its own."""
        path = self.folder / archive
        metadata = f"{distribution.replace('-', '_')}-1.0.dist-info"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{metadata}/METADATA", f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
            file.writestr(f"{metadata}/entry_points.txt", entry_points(entries))
        return path

    def host(self, **settings: Any) -> PluginHost:
        """A host that sees what is installed here, and nothing else."""
        return PluginHost(Settings(**settings), paths=[str(self.folder)])


def entry_points(entries: Mapping[str, str], group: str = "jackfield.v1") -> bytes:
    """An `entry_points.txt`."""
    return (f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in entries.items())).encode()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty folder for distributions. What is imported from it is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield Site(folder)
    for name, module in list(sys.modules.items()):
        if str(folder) in str(getattr(module, "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def gather() -> Callable[[AsyncIterator[Any]], list[Any]]:
    """Everything that an async iterator gives, in an event loop of its own."""

    async def collect(events: AsyncIterator[Any]) -> list[Any]:
        return [event async for event in events]

    def gathered(events: AsyncIterator[Any]) -> list[Any]:
        return asyncio.run(collect(events))

    return gathered
