"""What the source of a plugin says: which packages it imports, which names of the core, which secrets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jackfield_testkit.api_index import is_type_checking

LIKE_A_SECRET = re.compile(r"(?:[A-Z0-9]+_)*(?:KEY|TOKEN|SECRET|PASSWORD)(?:_[A-Z0-9]+)*")


def sources(folders: Sequence[Path]) -> Iterator[tuple[Path, ast.Module]]:
    """The modules below these folders, parsed."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            yield path, ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported_packages(node: ast.AST) -> Iterator[str]:
    """The top-level names that a module imports when it runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            if child.level == 0 and child.module:
                yield child.module.partition(".")[0]
        elif isinstance(child, ast.If) and is_type_checking(child.test):
            for branch in child.orelse:
                yield from imported_packages(branch)
        else:
            yield from imported_packages(child)


def secrets_read(tree: ast.Module) -> Iterator[str]:
    """The variables that a module asks the settings for, or reads from the environment and that sound like secrets."""
    constants = _constants(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="secret"), args=[first, *_]):
                yield from _text(first, constants)
            case ast.Call(func=ast.Name(id="MissingSecretError"), args=[first, *_]):
                yield from _text(first, constants)
            case ast.Call(func=ast.Attribute(attr="get" | "getenv", value=owner), args=[first, *_]):
                if ast.unparse(owner) in ("os.environ", "environ", "os"):
                    yield from filter(LIKE_A_SECRET.fullmatch, _text(first, constants))
            case ast.Subscript(value=owner, slice=key, ctx=ast.Load()):
                if ast.unparse(owner) in ("os.environ", "environ"):
                    yield from filter(LIKE_A_SECRET.fullmatch, _text(key, constants))


def _constants(tree: ast.Module) -> Mapping[str, str]:
    """The texts that names of a module stand for."""
    found = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                found[name] = text
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text))):
                found[name] = text
    return found


def _text(node: ast.expr, constants: Mapping[str, str]) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name) if name in constants:
            yield constants[name]
