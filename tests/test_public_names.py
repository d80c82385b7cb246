"""What is public of the core and the libraries: what others may import, and what `docs/versions.md` promises to keep.

The list beside this file is what was meant. A name that goes, or comes, is a decision: write it there, and into the
changelog.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).with_name("public_names.txt")
PUBLIC_IN_PACKAGES = {"jackfield.cli.main"}  # where the command line begins


def names_of(module: ast.Module) -> list[str]:
    """The public names of a module: those of `__all__`, else what is defined there without an underscore."""
    exported = [
        ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets)
    ]
    names = exported[0] if exported else defined_in(module)
    return sorted({name for name in names if not name.startswith("_") or name == "__version__"})


def defined_in(module: ast.Module) -> Iterator[str]:
    """What a module defines at its top."""
    for node in module.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Assign():
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def public_modules(source: Path) -> Iterator[tuple[str, ast.Module]]:
    """The modules below a folder that have no underscore anywhere in their path, by name."""
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if not any(part.startswith("_") and part != "__init__" for part in parts) and parts[-1] != "__main__":
            name = ".".join(part for part in parts if part != "__init__")
            yield name, ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def public(distributions: list[Any]) -> dict[str, list[str]]:
    """The public names of the core and the libraries, by module."""
    sources = [one.folder / "src" for one in distributions if one.is_core or one.folder.parent.name == "libraries"]
    return {name: names_of(tree) for source in sources for name, tree in public_modules(source)}


def as_lines(public: dict[str, list[str]]) -> list[str]:
    """A line for each module that has a public name."""
    return [f"{module}: {' '.join(names)}" for module, names in sorted(public.items()) if names]


def test_what_is_public_is_what_was_meant_to_be(public: dict[str, list[str]]) -> None:
    meant = LIST.read_text(encoding="utf-8").splitlines()
    assert as_lines(public) == meant, f"if that is meant, write it into {LIST.name} and the changelog"


def test_a_package_of_the_core_is_public_as_a_whole_and_its_modules_are_not(public: dict[str, list[str]]) -> None:
    inside = {name for name in public if name.count(".") > 1 and name.startswith("jackfield.")}
    assert inside == PUBLIC_IN_PACKAGES


def test_every_package_of_the_core_and_of_a_library_lists_its_names(distributions: list[Any]) -> None:
    for one in distributions:
        if not one.is_core and one.folder.parent.name != "libraries":
            continue
        for path in one.source.rglob("__init__.py"):
            text = path.read_text(encoding="utf-8")
            body = [node for node in ast.parse(text).body if not isinstance(node, ast.Expr)]
            assert not body or "\n__all__ = [" in text, f"{path} has names and no __all__"
