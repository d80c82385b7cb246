"""Write the index of the core's public names that `PluginSuite` checks plugins against. Run with `make known`.

The index is read from the source, without importing the core.
"""

from __future__ import annotations

import ast
import importlib.util
import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from packaging.version import Version

FOLDER = Path(__file__).resolve().parent.parent / "plugins/testing/testkit/src/jackfield_testkit/api"


def make_index(package: str = "jackfield") -> dict[str, list[str]]:
    """Return the public names of each module in an installed package: those in `__all__`, or else those it defines."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise LookupError(f"the package {package!r} is not installed")
    home = Path(next(iter(spec.submodule_search_locations)))
    index: dict[str, set[str]] = {}
    for path in sorted(home.rglob("*.py")):
        parts = path.relative_to(home).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            name = ".".join([package, *parts])
            index.setdefault(name, set()).update(_names_of(ast.parse(path.read_bytes())))
            if parts:
                index.setdefault(name.rpartition(".")[0], set()).add(parts[-1])
    return {module: sorted(names) for module, names in sorted(index.items())}


def _names_of(tree: ast.Module) -> set[str]:
    defined = set(_defined(tree.body))
    listed = [value for name, value in _assigned(tree.body) if name == "__all__" and value is not None]
    names = set(map(str, ast.literal_eval(listed[0]))) if listed else defined
    return {name for name in names if not name.startswith("_")}


def _defined(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.If(test=test, body=then, orelse=otherwise):
                is_for_checkers = ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
                yield from _defined(otherwise if is_for_checkers else [*then, *otherwise])
            case ast.Try(body=then, handlers=handlers):
                yield from _defined([*then, *(one for handler in handlers for one in handler.body)])
    yield from (name for name, _ in _assigned(body))


def _assigned(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    for node in body:
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def write_index(folder: Path, core: str) -> Path:
    """Write the index of the installed core to a file named after its minor version, and return the file's path."""
    version = Version(core)
    path = folder / f"{version.major}.{version.minor}.json"
    lines = [f"  {json.dumps(module)}: {json.dumps(names)}" for module, names in make_index().items()]
    text = '{\n "core": "%s",\n "modules": {\n%s\n }\n}\n' % (path.stem, ",\n".join(lines))  # noqa: UP031 - braces
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    print(write_index(FOLDER, version("jackfield")))  # noqa: T201
