"""Find every text in the code that users may read: errors, help, settings and docstrings.

Texts are found with `ast`; nothing is imported. The reference lists the errors, and a test checks all texts for wording
that a reader would stumble over.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Text:
    """A text of several words, in which `{name}` marks an inserted value and `{…}` one without a name."""

    path: Path
    line: int
    text: str
    is_docstring: bool = False


@dataclass(frozen=True)
class Raised:
    """An error message."""

    error: str
    package: str
    text: str


def sources() -> list[Path]:
    """Return the modules of the core and all plugins."""
    return sorted(
        path for folder in ("core/src", "plugins/*/*/src") for path in ROOT.glob(f"{folder}/**/*.py") if _is_ours(path)
    )


def texts_of(path: Path) -> Iterator[Text]:
    """Yield the texts in a module: public docstrings, and every other literal that contains a space."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = dict(_docstrings(tree, public=True))
    seen: set[ast.AST] = set(docstrings)
    for docstring, is_public in docstrings.items():
        if is_public:
            yield Text(path, docstring.lineno, str(docstring.value), is_docstring=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            seen.update(node.values)
        if isinstance(node, ast.JoinedStr | ast.Constant) and node not in seen:
            text = _rendered(node, {})
            if text is not None and " " in text.strip():
                yield Text(path, node.lineno, text)


def raised_in(path: Path, errors: Iterable[str]) -> Iterator[Raised]:
    """Yield the messages with which a module raises errors of these classes.

    An error is recognised as a call of the class, of a helper that takes the class, or of `super().__init__` inside it.
    """
    names = frozenset(errors)
    package = _package_of(path)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for owner, scope in _scopes(tree, ""):
        for call in _calls(scope):
            made = [_last_name(call.func), *map(_last_name, call.args)]
            error = owner if made[0] == "__init__" else next((name for name in made if name in names), "")
            if error not in names:
                continue
            known = _assigned(scope)
            arguments = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "message")]
            rendered = [_rendered(argument, known) for argument in arguments]
            text = next((one for one in rendered if one and _says_something(one)), None)
            if text:
                yield Raised(error, package, " ".join(text.split()))


def _is_ours(path: Path) -> bool:
    # Templates of `jackfield new` are text for another program.
    return "template" not in path.relative_to(ROOT).parts


def _package_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    folder = ROOT.joinpath(*parts[: parts.index("src")])
    lines = (folder / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    return next(line.split('"')[1] for line in lines if line.startswith("name = "))


def _docstrings(node: ast.AST, *, public: bool) -> Iterator[tuple[ast.Constant, bool]]:
    """Yield each docstring, with True if it belongs to a public name."""
    if isinstance(node, ast.Module | ast.ClassDef | _Function):
        name = getattr(node, "name", "")
        public = public and (not name.startswith("_") or name.startswith("__"))
        first = node.body[0] if node.body else None
        match first:
            case ast.Expr(ast.Constant(str()) as docstring):
                yield docstring, public
    for child in _outside_of_expressions(node):
        yield from _docstrings(child, public=public and not isinstance(node, _Function))


def _scopes(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the module and each function in it, with the name of the enclosing class."""
    if isinstance(node, ast.Module | _Function):
        yield owner, node
    for child in _outside_of_expressions(node):
        yield from _scopes(child, node.name if isinstance(node, ast.ClassDef) else owner)


def _outside_of_expressions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node in which classes and functions may be defined."""
    return (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def _calls(scope: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls in a scope, without those in nested functions, in no particular order."""
    open_ = [scope]
    while open_:
        for child in ast.iter_child_nodes(open_.pop()):
            if isinstance(child, ast.Call):
                yield child
            if not isinstance(child, _Function):
                open_.append(child)


def _assigned(scope: ast.AST) -> dict[str, str]:
    """Return the texts assigned to names in a function: `why = "…"`, followed by `raise ConfigError(why)`."""
    texts: dict[str, str] = {}
    for node in ast.walk(scope) if isinstance(scope, _Function) else ():
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            text = _rendered(node.value, texts)
            if text is not None:
                texts.setdefault(node.targets[0].id, text)
    return texts


def _rendered(node: ast.AST, known: Mapping[str, str]) -> str | None:
    """Return an expression's text as its reader sees it, or None if it is not a text."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(parts):
            return "".join(_part(part, known) for part in parts)
        case ast.BinOp(left, ast.Add(), right):
            both = _rendered(left, known), _rendered(right, known)
            return None if both == (None, None) else "".join("{…}" if one is None else one for one in both)
        case ast.Name(name):
            return known.get(name)
    return None


def _part(node: ast.expr, known: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.FormattedValue)  # noqa: S101 - a template string has only these two
    inner = _rendered(node.value, known)
    if inner is not None:
        return inner
    return f"{{{_last_name(node.value) or '…'}}}"


def _last_name(node: ast.AST) -> str:
    """Return `name` for `name` and for `self.name`, or '' for anything else."""
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name.lstrip("_") if not name.startswith("__") else name
    return ""


def _says_something(text: str) -> bool:
    """Return True if a text contains words besides inserted values."""
    return " " in text.strip() and sum(map(str.isalpha, "".join(_outside(text)))) > 6


def _outside(text: str) -> Iterator[str]:
    depth = 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if not depth:
            yield char
