"""A folder of fake distributions, laid out as an installer would: for tests of what finds and loads plugins.

In a `conftest.py`:

```python
from tests.support.site import FakeSite, site

__all__ = ["site"]
```

Then a test may take `site`, and install, change and remove distributions in it:

```python
def test_a_tool_of_one_name_is_found(site: FakeSite) -> None:
    site.add_tools("acme-search", "search")
    assert site.host().names("tool") == ["search"]
    assert site.times_imported("acme-search") == 0
```
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from jackfield.plugins import PluginHost, Settings

GROUP = "jackfield.v1"

_LIGHT_MODULE = """
from jackfield.plugins import ToolSpec, hook

with open({marker!r}, "a") as marker:
    marker.write("imported\\n")
{before}

@hook.tools
def tools():
    return [ToolSpec(name=name, target="{module}:Tool", description="From {module}.") for name in {names!r}]


def Tool(cfg=None):
    raise NotImplementedError
"""

_ONE_TOOL = """
from jackfield.plugins import ToolSpec, hook

@hook.tools
def tools():
    return [ToolSpec(name={name!r}, target={target!r}, description="Good."{more})]
"""


class FakeSite:
    """A folder for distributions. It is on `sys.path` while the fixture `site` lives.

    Attributes:
        folder: Where everything is; a test may spoil files in it as it likes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # --- installing ---

    def add(
        self,
        distribution: str,
        entries: Mapping[str, str] | None = None,
        *,
        version: str = "1.0",
        group: str = GROUP,
        raw: bytes | None = None,
        modules: Mapping[str, str] | None = None,
        requires: Iterable[str] = (),
    ) -> Path:
        """Install a distribution.

        Args:
            distribution: Its name, as its authors write it.
            entries: Its entry points, `kind.name` → module.
            version: Of the distribution.
            group: Which the entry points are in.
            raw: The bytes of `entry_points.txt`, instead of `entries`.
            modules: The source of each module; `a.b` is put into a package, which needs no `a.__init__`.
            requires: Its requirements.

        Returns:
            The folder of its metadata.
        """
        metadata = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        header = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
        header += [f"Requires-Dist: {requirement}" for requirement in requires]
        (metadata / "METADATA").write_text("\n".join(header) + "\n", encoding="utf-8")
        (metadata / "INSTALLER").write_text("fake-site\n", encoding="utf-8")
        (metadata / "entry_points.txt").write_bytes(entry_points(entries or {}, group) if raw is None else raw)
        sources = [self._write_module(module, source) for module, source in (modules or {}).items()]
        self._write_record(metadata, sources)
        return metadata

    def add_tools(self, distribution: str, *names: str, before: str = "", version: str = "1.0") -> str:
        """Install a plugin with tools that are described as `From MODULE.`, and which counts its imports.

        Args:
            distribution: Its name.
            names: Of the tools.
            before: Source that runs when the light module is imported, after the import is counted.
            version: Of the distribution.

        Returns:
            The name of its light module.
        """
        module = f"{distribution.replace('-', '_').lower()}_light"
        source = _LIGHT_MODULE.format(
            marker=str(self.marker(distribution)), before=before, module=module, names=list(names)
        )
        self.add(distribution, {f"tool.{name}": module for name in names}, version=version, modules={module: source})
        return module

    def add_zip(self, archive: str, distribution: str, entries: Mapping[str, str]) -> Path:
        """Put a distribution into a zip file of its own; gives its path, which is not on `sys.path` by itself."""
        path = self.folder / archive
        metadata = f"{distribution.replace('-', '_')}-1.0.dist-info"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{metadata}/METADATA", f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
            file.writestr(f"{metadata}/entry_points.txt", entry_points(entries))
        return path

    # --- changing ---

    def remove(self, distribution: str) -> None:
        """Remove a distribution, by its RECORD, as an installer does. What is imported stays imported.

        Raises:
            FileNotFoundError: It is not installed here.
        """
        metadata = self.metadata(distribution)
        with (metadata / "RECORD").open(encoding="utf-8", newline="") as record:
            for path, *_ in csv.reader(record):
                (self.folder / path).unlink(missing_ok=True)
        shutil.rmtree(metadata)

    def metadata(self, distribution: str) -> Path:
        """The folder with the metadata of an installed distribution.

        Raises:
            FileNotFoundError: It is not installed here.
        """
        for folder in sorted(self.folder.glob(f"{distribution.replace('-', '_')}-*.dist-info")):
            return folder
        raise FileNotFoundError(f"{distribution} is not installed in {self.folder}")

    # --- looking ---

    def marker(self, distribution: str) -> Path:
        """The file that tells how often a plugin of `add_tools` was imported, by whichever process."""
        return self.folder / f"{distribution}.imported"

    def times_imported(self, distribution: str) -> int:
        """How often it was."""
        marker = self.marker(distribution)
        return len(marker.read_text().splitlines()) if marker.exists() else 0

    def host(self, **settings: Any) -> PluginHost:
        """A host that sees what is installed here, and nothing else; `settings` are fields of `Settings`."""
        return PluginHost(Settings(**settings), paths=[str(self.folder)])

    # --- parts ---

    def _write_module(self, module: str, source: str) -> Path:
        path = self.folder / (module.replace(".", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
        return path

    def _write_record(self, metadata: Path, sources: Iterable[Path]) -> None:
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        for path in [*sources, *sorted(metadata.iterdir())]:
            content = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            writer.writerow([path.relative_to(self.folder).as_posix(), f"sha256={digest}", len(content)])
        writer.writerow([f"{metadata.name}/RECORD", "", ""])
        (metadata / "RECORD").write_text(lines.getvalue(), encoding="utf-8")


def light(name: str = "x", target: str = "m:T", more: str = "") -> str:
    """Return the source of a light module that offers one tool.

    Args:
        name: The name of the tool.
        target: The object that makes it.
        more: Other arguments of its spec, each after a comma.
    """
    return _ONE_TOOL.format(name=name, target=target, more=more)


def entry_points(entries: Mapping[str, str], group: str = GROUP) -> bytes:
    """The bytes of an `entry_points.txt` with one group."""
    return (f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in entries.items())).encode()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """An empty folder for distributions, first on `sys.path`. What is imported from it is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = dict(sys.modules)
    yield FakeSite(folder)
    # A worker of a long run has thousands of modules; to ask each where it is from took longer than most tests do.
    # A copy, because a thread that a test left behind may import something.
    new = [name for name, module in list(sys.modules.items()) if before.get(name) is not module]
    for name in new:
        if _is_from(folder, sys.modules[name]):
            del sys.modules[name]


def _is_from(folder: Path, module: object) -> bool:
    # A package without `__init__` has no file, only a path; not everything in `sys.modules` is a module.
    path = getattr(module, "__path__", ())
    places = [getattr(module, "__file__", ""), *(path if isinstance(path, Iterable) else ())]
    return any(str(place).startswith(str(folder)) for place in places)
