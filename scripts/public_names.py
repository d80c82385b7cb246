"""Write the public names of the core and libraries, with methods and signatures, to `tests/public_names.txt`.

`make known` runs this script, which reads names from the source and imports nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from types import EllipsisType
from typing import TypeAlias

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests/public_names.txt"
MAX_DEFAULT_CHARS = 60
PUBLIC_METHODS = ("__init__", "__call__", "__enter__", "__aenter__", "__iter__", "__aiter__", "__getitem__", "__len__")

Definition: TypeAlias = tuple[str, str]  # a module and one of its top-level names
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class Package:
    """The source of one distribution.

    Attributes:
        source: The folder that contains its top-level package.
    """

    source: Path
    exported: set[Definition] = field(default_factory=set)

    @cached_property
    def paths(self) -> dict[str, Path]:
        """The files of the package's modules, by module name."""
        return {self._name(path): path for path in sorted(self.source.rglob("*.py"))}

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.source).with_suffix("").parts
        return ".".join(part for part in parts if part != "__init__")

    @cache  # noqa: B019 - packages live as long as the script or test
    def tree(self, module: str) -> ast.Module:
        """Return a module's syntax tree."""
        return ast.parse(self.paths[module].read_bytes())

    @cache  # noqa: B019 - as above
    def definitions(self, module: str) -> dict[str, ast.stmt]:
        """Return the top-level definitions in a module, by name."""
        return {name: node for node in _statements(self.tree(module)) for name in _names_defined_by(node)}

    @cache  # noqa: B019 - as above
    def imports(self, module: str) -> dict[str, Definition]:
        """Return a module's top-level imports from this package, including those for type checkers."""
        return {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in _statements(self.tree(module))
            if isinstance(node, ast.ImportFrom) and node.module in self.paths
            for alias in node.names
        }

    def public_modules(self) -> dict[str, list[str]]:
        """Return the public names of each module without an underscore in its path."""
        modules = {}
        for module in self.paths:
            parts = module.split(".")
            if not any(part.startswith("_") for part in parts):
                modules[module] = self._public_names(module)
        return modules

    def _public_names(self, module: str) -> list[str]:
        exports = self.definitions(module).get("__all__")
        names = ast.literal_eval(exports.value) if isinstance(exports, ast.Assign) else self.definitions(module)
        return sorted({name for name in names if not name.startswith("_") or name == "__version__"})

    def definition_of(self, module: str, name: str) -> Definition:
        """Return the place where a name is defined, following imports within this package."""
        while name not in self.definitions(module) and name in self.imports(module):
            module, name = self.imports(module)[name]
        return module, name

    def lines(self) -> Iterator[str]:
        """Yield each public module, followed by its public names and the members of its classes."""
        public = {module: names for module, names in self.public_modules().items() if names}
        places: dict[Definition, str] = {}
        # A name is documented where it is defined, or in the innermost package that exports it.
        for module in sorted(public, key=lambda one: -one.count(".")):
            for name in public[module]:
                definition = self.definition_of(module, name)
                if definition not in places or definition[0] == module:
                    places[definition] = module
        self.exported = set(places)
        for module in sorted(public):
            yield f"{module}:"
            for name in public[module]:
                definition = self.definition_of(module, name)
                if places[definition] == module:
                    yield from (f"  {line}" for line in self._described(*definition, name))
                else:
                    yield f"  {name} is {places[definition]}.{name}"

    def _described(self, module: str, name: str, label: str) -> Iterator[str]:
        match self.definitions(module).get(name):
            case ast.ClassDef() as node:
                yield f"class {label}({', '.join(_short(base) for base in node.bases)})"
                yield from (f"  {line}" for _, line in sorted(self._members(module, node).items()))
            case ast.FunctionDef() | ast.AsyncFunctionDef() as node:
                yield _function_line(node, label)
            case _:
                yield label

    def _members(self, module: str, node: ast.ClassDef) -> dict[str, str]:
        """Return the line for each public member, by name, including members inherited from private base classes."""
        members: dict[str, str] = {}
        for expression in reversed(node.bases):
            base = expression.value if isinstance(expression, ast.Subscript) else expression
            if isinstance(base, ast.Name):
                inherited = self.definition_of(module, base.id)
                defined = self.definitions(inherited[0]).get(inherited[1])
                if isinstance(defined, ast.ClassDef) and inherited not in self.exported:
                    members |= self._members(inherited[0], defined)
        for statement in _statements(node):
            members |= _member_lines(statement)
            if isinstance(statement, ast.Assign):
                members |= self._borrowed_methods(module, statement)
        if _is_dataclass(node) and "__init__" not in members:
            members["__init__"] = f"__init__({', '.join(_fields(node))})"
        return members

    def _borrowed_methods(self, module: str, node: ast.Assign) -> dict[str, str]:
        """Return the lines for methods assigned from functions in another module: `ask = asking.ask`."""
        targets, values = (
            [*side.elts] if isinstance(side, ast.Tuple) else [side] for side in (node.targets[0], node.value)
        )
        lines = {}
        for target, value in zip(targets, values, strict=False):
            match target, value:
                case ast.Name(id=name), ast.Attribute(value=ast.Name(id=alias), attr=attribute) if _is_public(name):
                    owner = ".".join(self.imports(module).get(alias, ("", "")))
                    function = self.definitions(owner).get(attribute) if owner in self.paths else None
                    if isinstance(function, Function):
                        lines[name] = _function_line(function, name, skip_first=True)
        return lines


def _statements(node: ast.Module | ast.ClassDef) -> Iterator[ast.stmt]:
    """Yield the statements of a body, including those inside conditions."""
    pending: list[ast.stmt] = [*node.body]
    while pending:
        statement = pending.pop(0)
        if isinstance(statement, ast.If):
            pending = [*statement.body, *statement.orelse, *pending]
        elif isinstance(statement, ast.Try):
            pending = [*statement.body, *pending]
        else:
            yield statement


def _names_defined_by(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(_short(one).startswith(("dataclass", "dataclasses.dataclass")) for one in node.decorator_list) or any(
        _short(base) == "NamedTuple" for base in node.bases
    )


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """Yield the constructor parameters that a dataclass defines itself, without those of its bases."""
    if any("kw_only=True" in _short(decorator) for decorator in node.decorator_list):
        yield "*"
    for statement in _statements(node):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                if _short(annotation) == "KW_ONLY":
                    yield "*"
                elif not _short(annotation).startswith("ClassVar") and "init=False" not in _default(value, whole=True):
                    default = _default(value)
                    yield f"{name}={default}" if default else name


def _attributes(statements: Sequence[ast.stmt]) -> dict[str, str]:
    """Return the lines for public attributes set in a constructor."""
    lines: dict[str, str] = {}
    for statement in statements:
        targets: list[ast.expr] = []
        match statement:
            case ast.Assign():
                targets = statement.targets
            case ast.AnnAssign():
                targets = [statement.target]
            case ast.With() | ast.If() | ast.Try():
                lines |= _attributes([*statement.body, *getattr(statement, "orelse", ())])
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                match part:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name) if _is_public(name):
                        lines[name] = f"{name}: attribute"
    return lines


def _member_lines(node: ast.stmt) -> dict[str, str]:
    """Return the line for each public member that a statement in a class defines."""
    match node:
        case ast.FunctionDef(name="__init__"):
            return {**_attributes(node.body), "__init__": _function_line(node, "__init__", skip_first=True)}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if _is_public(name):
            decorators = {_short(decorator) for decorator in node.decorator_list}
            if "overload" in decorators or any(one.endswith((".setter", ".deleter")) for one in decorators):
                return {}
            if decorators & {"property", "cached_property", "functools.cached_property"}:
                return {name: f"{name}: property"}
            return {name: _function_line(node, name, skip_first="staticmethod" not in decorators)}
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value) if _is_public(name):
            kind = "class variable" if _short(annotation).startswith("ClassVar") else "field"
            default = _default(value)
            return {name: f"{name}: {kind} = {default}" if default else f"{name}: {kind}"}
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_public(name):
            return {name: f"{name} = {_default(value)}"}
    return {}


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in PUBLIC_METHODS


def _function_line(node: Function, label: str, *, skip_first: bool = False) -> str:
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{prefix}{label}({', '.join(_parameters(node.args, skip_first=skip_first))})"


def _parameters(arguments: ast.arguments, *, skip_first: bool) -> Iterator[str]:
    """Yield the parameters of a function with their defaults as written, without types."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: Sequence[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    last_positional_only = len(arguments.posonlyargs) - 1
    for index, (parameter, default) in enumerate(zip(positional, defaults, strict=True)):
        if index or not skip_first:
            yield _parameter(parameter, default)
        if index == last_positional_only and (index or not skip_first):
            yield "/"
    if arguments.vararg:
        yield f"*{arguments.vararg.arg}"
    elif arguments.kwonlyargs:
        yield "*"
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(parameter, default)
    if arguments.kwarg:
        yield f"**{arguments.kwarg.arg}"


def _parameter(parameter: ast.arg, default: ast.expr | None) -> str:
    return parameter.arg if default is None else f"{parameter.arg}={_default(default)}"


def _default(value: ast.expr | None, *, whole: bool = False) -> str:
    """Return a default as written, or '' if there is none. A long one is truncated, and a digest is added.

    Args:
        value: The value. For a call of `field` or `Field`, the default is taken from its arguments.
        whole: Return the whole value, untruncated.
    """
    match value:
        case ast.Call(func=ast.Name(id="field" | "Field"), args=positional, keywords=keywords) if not whole:
            named = [word.value for word in keywords if word.arg in ("default", "default_factory")]
            return _default(next(iter([*positional, *named]), None))
        case None | ast.Constant(value=EllipsisType()):
            return ""
    text = _short(value)
    if whole or len(text) <= MAX_DEFAULT_CHARS:
        return text
    return f"{text[:MAX_DEFAULT_CHARS]}… {sha256(text.encode()).hexdigest()[:8]}"


def _short(node: ast.expr) -> str:
    """Return an expression on one line."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant):
        return repr(node.value)
    return " ".join(ast.unparse(node).split())


def sources() -> list[Path]:
    """Return the source folders of the core and the libraries."""
    return [ROOT / "core/src", *sorted(ROOT.glob("plugins/libraries/*/src"))]


def public_text() -> str:
    """Return the text of the list."""
    return "".join(f"{line}\n" for source in sources() for line in Package(source).lines())


if __name__ == "__main__":
    LIST.write_text(public_text(), encoding="utf-8")
