"""Let a law go on after an assertion that fails, and report all that have failed.

A law stops at its first failed assertion, which hides the others from a component that is wrong in one place. Here each
`assert` of the suites is evaluated and noted instead, and the test fails at its end. A broken component thus shows each
assertion that it can make false.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import importlib.util
import pkgutil
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any

import pytest

SUITES = "jackfield_testkit.suites"
STRICT = f"{SUITES}.server_stdio"
"""A module whose laws wait a second at each failed assertion, and stop at the first."""
failed: list[str] = []
"""The assertions that have failed in this test, as `path:line`, with their messages."""


class _Noting(ast.NodeTransformer):
    """Replaces `assert test, message` by `if not test: __note__(path, line, message)`."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        message = node.msg or ast.Constant("")
        where: list[ast.expr] = [ast.Name("__file__", ast.Load()), ast.Constant(node.lineno), message]
        note = ast.Expr(ast.Call(ast.Name("__note__", ast.Load()), where, []))
        instead = ast.If(ast.UnaryOp(ast.Not(), node.test), [note], [])
        return ast.fix_missing_locations(ast.copy_location(instead, node))


class _Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:
        return compile(_Noting().visit(ast.parse(data)), path, "exec", dont_inherit=True, optimize=_optimize)

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)  # never from a cache


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if not name.startswith(f"{SUITES}.") or name == STRICT:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None:
            return spec
        return importlib.util.spec_from_file_location(name, spec.origin, loader=_Loader(name, spec.origin))


def load_suites() -> None:
    """Import all suites in their noting form."""
    vars(builtins)["__note__"] = lambda file, line, message: failed.append(f"{file}:{line} {message}")
    sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]
    for module in pkgutil.iter_modules(import_module(SUITES).__path__):
        import_module(f"{SUITES}.{module.name}")


# --- hooks for pytest ---


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    failed.clear()
    result = yield
    assert not failed, failed[0]
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    if call.excinfo:
        places = [entry.partition(" ")[0] for entry in failed] if call.when == "call" else []
        places += [place_of(call.excinfo.value)]
        item.user_properties.append(("places", "\n".join(filter(None, places))))
    return (yield)


def place_of(error: BaseException) -> str:
    """Return the place at which a suite fails or skips a test; an empty text if the error comes from elsewhere."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    places = [f"{frame.f_code.co_filename}:{line}" for frame, line in traceback.walk_tb(error.__traceback__)]
    while "_pytest" in places[-1]:
        places.pop()
    is_check = isinstance(error, AssertionError | pytest.fail.Exception | pytest.skip.Exception)
    return places[-1] if is_check and "jackfield_testkit" in places[-1] else ""
