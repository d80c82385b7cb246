"""Find the packages, core names and secrets used in a plugin's source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jackfield_manage.judging.used_names import running_nodes

LIKE_A_SECRET = re.compile(r"(?:[A-Z0-9]+_)*(?:KEY|TOKEN|SECRET|PASSWORD)(?:_[A-Z0-9]+)*")


@dataclass(frozen=True)
class Source:
    """A source module.

    Attributes:
        path: The file's path.
        tree: The module's syntax tree.
    """

    path: Path
    tree: ast.Module

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """The nodes that run, excluding those that only type checkers read."""
        return running_nodes(self.tree)


def sources(folders: Sequence[Path]) -> Iterator[Source]:
    """Yield the modules in these directories and their subdirectories."""
    for path in (path for folder in folders for path in sorted(folder.rglob("*.py"))):
        yield Source(path, ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))


def imported_packages(source: Source) -> Iterator[str]:
    """Yield the top-level names that a module imports at run time."""
    for node in source.nodes:
        match node:
            case ast.Import(names=names):
                yield from (one.name.partition(".")[0] for one in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]


def secrets_read(source: Source) -> Iterator[str]:
    """Yield the variables that a module requests from the settings, or reads from the environment as secrets."""
    constants = _constants(source.tree)
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="secret"), args=[first, *_]):
                yield from _text(first, constants)
            case ast.Call(func=ast.Name(id="MissingSecretError"), args=[first, *_]):
                yield from _text(first, constants)
            case ast.Call(func=ast.Attribute(attr="get" | "getenv", value=owner), args=[first, *_]):
                yield from _secret(owner, first, constants)
            case ast.Subscript(value=owner, slice=key, ctx=ast.Load()):
                yield from _secret(owner, key, constants)


def _constants(tree: ast.Module) -> Mapping[str, str]:
    """Return the strings assigned to module-level names."""
    found = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                found[name] = text
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text))):
                found[name] = text
    return found


def _secret(owner: ast.expr, key: ast.expr, constants: Mapping[str, str]) -> Iterator[str]:
    """Yield a variable read from the environment if its name looks like a secret."""
    if isinstance(owner, ast.Name | ast.Attribute) and ast.unparse(owner) in ("os.environ", "environ", "os"):
        yield from filter(LIKE_A_SECRET.fullmatch, _text(key, constants))


def _text(node: ast.expr, constants: Mapping[str, str]) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name) if name in constants:
            yield constants[name]
