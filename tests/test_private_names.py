"""No class overrides or uses an underscored name of a base class in another distribution; authors need none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from jackfield.cli.main import main as jackfield

Address = tuple[str, str]  # a module, and the name of a class in it


@dataclass
class Code:
    """The classes and imports of some modules, by AST alone; modules of one top-level package are one distribution."""

    modules: Mapping[str, ast.Module]
    packages: frozenset[str] = frozenset()
    cache: dict[str, dict[str, Address]] = field(default_factory=dict)

    @cached_property
    def classes(self) -> dict[Address, ast.ClassDef]:
        return {
            (module, node.name): node
            for module, tree in self.modules.items()
            for node in tree.body
            if isinstance(node, ast.ClassDef)
        }

    def imports_of(self, module: str) -> dict[str, Address]:
        """Return what each imported name of a module is; of imports inside functions as well."""
        if module not in self.cache:
            self.cache[module] = {
                alias.asname or alias.name: (self._absolute(module, node), alias.name)
                for node in ast.walk(self.modules[module])
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
        return self.cache[module]

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        base = parts[: len(parts) - node.level + (module in self.packages)]
        return ".".join([*base, *([node.module] if node.module else [])])

    def class_of(self, module: str, expression: ast.expr) -> Address | None:
        """Return the class that a base in a module's class statement is; None if it is not in this code."""
        match expression:
            case ast.Subscript(value=value):
                return self.class_of(module, value)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                parent, child = self.imports_of(module).get(name, (name, ""))
                return self._defined((f"{parent}.{child}" if child else parent, attribute))
            case ast.Name(id=name):
                return self._defined((module, name))
        return None

    def _defined(self, address: Address) -> Address | None:
        seen = set()
        while address not in self.classes:
            module, name = address
            if address in seen or module not in self.modules or name not in self.imports_of(module):
                return None
            seen.add(address)
            address = self.imports_of(module)[name]
        return address

    def ancestors(self, address: Address) -> Iterator[Address]:
        for base in self.classes[address].bases:
            if parent := self.class_of(address[0], base):
                yield parent
                yield from self.ancestors(parent)

    def faults(self, modules: Iterable[str] | None = None) -> Iterator[str]:
        """Yield each underscored name that a class of some modules shares with an ancestor in another distribution."""
        selected = self.modules if modules is None else set(modules)
        for address, node in self.classes.items():
            if address[0] not in selected or not node.bases:
                continue
            own, used = defined_in(node), private_names_used_in(node)
            for ancestor in dict.fromkeys(self.ancestors(address)):
                if package_of(ancestor) == package_of(address):
                    continue
                for name in sorted(defined_in(self.classes[ancestor]) & (own | used)):
                    verb = "overrides" if name in own else "uses"
                    yield f"{'.'.join(address)} {verb} {name} of {'.'.join(ancestor)}"


def package_of(address: Address) -> str:
    return address[0].partition(".")[0]


def defined_in(node: ast.ClassDef) -> set[str]:
    """Return the underscored methods and attributes that a class defines, those set on `self` included."""
    names = set()
    for statement in node.body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    names |= {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and is_self(one.value)
    }
    return {name for name in names if is_private(name)}


def private_names_used_in(node: ast.ClassDef) -> set[str]:
    return {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute) and is_self(one.value) and is_private(one.attr)
    }


def is_self(node: ast.expr) -> bool:
    match node:
        case ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super")):
            return True
    return False


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def read_code(sources: Iterable[Path]) -> Code:
    """Read the modules below folders; modules without classes and imports of others only if they may re-export."""
    modules, packages = {}, set()
    for source in sources:
        for path in source.rglob("*.py"):
            parts = path.relative_to(source).with_suffix("").parts
            text = path.read_bytes()
            if parts[-1] == "__init__" or b"class " in text:
                modules[".".join(part for part in parts if part != "__init__")] = ast.parse(text)
            if parts[-1] == "__init__":
                packages.add(".".join(parts[:-1]))
    return Code(modules, frozenset(packages))


@pytest.fixture(scope="module")
def ours(distributions: list[Any]) -> Code:
    return read_code(one.folder / "src" for one in distributions)


def test_no_class_overrides_or_uses_a_private_name_of_another_distribution(ours: Code) -> None:
    assert len(ours.classes) > 1000
    assert sorted(set(ours.faults())) == []


def test_no_plugin_of_the_template_needs_a_private_name(
    ours: Code, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in ("llm", "searcher", "sandbox", "agent", "call_format", "store", "embedder", "observer"):
        name = f"tide-{kind.replace('_', '-')}"
        assert jackfield(["new", kind, name, "--dir", str(tmp_path / name), "--description", "Tides, for a test."]) == 0
    capsys.readouterr()
    template = read_code(path / "src" for path in tmp_path.iterdir())
    code = Code({**ours.modules, **template.modules}, ours.packages | template.packages)
    assert len(template.classes) >= 8
    assert sorted(set(code.faults(template.modules))) == []


def test_no_example_of_the_docs_needs_a_private_name(ours: Code, root: Path) -> None:
    pages = [*root.glob("docs/**/*.md"), *root.glob("plugins/*/*/README.md"), root / "README.md"]
    modules = {}
    for page in pages:
        for number, block in enumerate(
            re.findall(r"^```python[^\n]*\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
        ):
            if "class " in block:
                modules[f"{page.relative_to(root)}#{number}"] = ast.parse(block)
    assert len(modules) > 20
    assert sorted(set(Code({**ours.modules, **modules}, ours.packages).faults(modules))) == []


BASE = """
from acme._parts import Inner as Exported

class Base:
    _limit = 3

    def __init__(self): self._state: int = 1
    def _read(self): ...
    def read(self): self._read()
"""
SAMPLES = {
    "def _read(self): ...": ["overrides _read"],
    "_limit = 4": ["overrides _limit"],
    "def __init__(self): self._state = 2": ["overrides _state"],
    "def read(self): return super()._read()": ["uses _read"],
    "def read(self): return self._state": ["uses _state"],
    "async def _deep(self): ...": ["overrides _deep"],
    "def read(self): self._own = 1": [],
    "def __init__(self): self.__state = 2": [],
}


@pytest.mark.parametrize("body", SAMPLES)
@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("from acme import Base", "Base"),
        ("from acme.base import Base as B", "B[int]"),
        ("from acme import base", "base.Base"),
        ("import acme", "acme.Base"),
        ("from other._between import Between", "Between"),
    ],
)
def test_a_private_name_that_two_distributions_share_is_reported(imports: str, base: str, body: str) -> None:
    texts = {
        "acme": "from .base import Base",
        "acme.base": BASE.replace("class Base", "class Base(Exported)"),
        "acme._parts": "class Inner:\n    def _deep(self): ...",
        "other": "",
        "other._between": "from acme import Base\nclass Between(Base): ...",
        "other.mine": f"{imports}\nclass Mine({base}):\n    {body}",
    }
    code = Code({name: ast.parse(text) for name, text in texts.items()}, frozenset({"acme", "other"}))
    reports = [f"other.mine.Mine {' of '.join([one, owner_of(one)])}" for one in SAMPLES[body]]
    assert sorted(set(code.faults())) == reports


def owner_of(report: str) -> str:
    return "acme._parts.Inner" if report.endswith("_deep") else "acme.base.Base"
