"""Share the base of all suites, whose tests cannot be overridden, only expected to fail, with a reason."""

from __future__ import annotations

import functools
import inspect
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

import pytest
from packaging.version import InvalidVersion, Version

from jackfield_testkit.network import offline

Test = TypeVar("Test", bound=Callable[..., None])


class Suite:
    """A set of tests that a subclass inherits whole.

    Attributes:
        level: The version of the contract that is kept. Newer tests run as well; one that fails is reported as an
            expected failure, so that a newer kit breaks no build. Raise the level once they pass.
        xfail: Tests that are known to fail, each with the reason; `"test_a"` with all its parameters, `"test_a[b]"`
            with this one. One that passes nevertheless is a failure, and a parameter that does not exist is an error,
            so that the list stays true.
    """

    level: ClassVar[str] = "0.1"
    xfail: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _version(cls.level, f"{cls.__name__}.level")
        if "__init__" in cls.__dict__:
            raise TypeError(f"{cls.__name__} has an __init__: pytest would silently skip its tests")
        _refuse_overriding(cls)
        for name, reason in cls.xfail.items():
            if not (name.startswith("test_") and callable(getattr(cls, name.partition("[")[0], None))):
                raise TypeError(f"{cls.__name__}.xfail names {name!r}, which is not one of its tests")
            if not reason.strip():
                raise TypeError(f"{cls.__name__}.xfail[{name!r}] needs a reason")

    @pytest.fixture(autouse=True)
    def _stay_on_this_machine(self, request: pytest.FixtureRequest) -> Iterator[None]:
        with offline(request.node):
            yield

    @pytest.fixture(autouse=True)
    def _expect_failures(self, request: pytest.FixtureRequest) -> None:
        _refuse_stale(self.xfail, request)
        names = (request.node.name, getattr(request.node, "originalname", request.node.name))
        reason = next((self.xfail[name] for name in names if name in self.xfail), None)
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


def since(version: str) -> Callable[[Test], Test]:
    """Mark a test as part of the contract from this version on.

    In a suite of a lower level, its failure is an expected failure, and its success is not reported. Everything it uses
    must be at least as old as itself: the failure of a fixture is a failure at any level.
    """
    introduced = _version(version, "since")

    def mark(test: Test) -> Test:
        if inspect.iscoroutinefunction(test) or inspect.isgeneratorfunction(test):
            raise TypeError(f"{test.__name__} must be a plain function: its body would not run here")

        @functools.wraps(test)
        def run(self: Suite, *args: Any, **kwargs: Any) -> None:
            if self.level and introduced <= Version(self.level):
                return test(self, *args, **kwargs)
            try:
                return test(self, *args, **kwargs)
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - any failure is the expected one
                told = f"{type(error).__name__}: {error}".partition("\n")[0]
                pytest.xfail(f"new in {version}; your level is {self.level} ({told})")

        run.since = version  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return mark


def suite_of(cls: type[Suite]) -> type[Suite]:
    """Return the suite that a class of tests subclasses, by its name; the class itself if its only base is `Suite`."""
    above = (base for base in cls.__mro__[1:] if issubclass(base, Suite) and base is not Suite)
    return next((base for base in above if base.__name__.endswith("Suite")), cls)


def _version(text: str, what: str) -> Version:
    try:
        return Version(text)
    except (InvalidVersion, TypeError):
        raise TypeError(f"{what} must be a version such as '0.1', not {text!r}") from None


def _refuse_stale(expected: Mapping[str, str], request: pytest.FixtureRequest) -> None:
    """Fail if `xfail` names a parameter of this test that does not exist, which only a complete run shows."""
    test = getattr(request.node, "originalname", request.node.name)
    named = {name for name in expected if name.startswith(f"{test}[")}
    if not named or _is_narrowed(request.config):
        return
    existing = {item.name for item in request.session.items if getattr(item, "cls", None) is request.cls}
    if stale := named - existing:
        pytest.fail(f"{request.cls.__name__}.xfail names parameters that do not exist: {', '.join(sorted(stale))}")


def _is_narrowed(config: pytest.Config) -> bool:
    """Return True if the run is narrowed to some tests."""
    options = ("keyword", "markexpr", "deselect", "lf", "stepwise")
    return any(config.getoption(name, None) for name in options) or any("[" in given for given in config.args)


def _refuse_overriding(cls: type[Suite]) -> None:
    """Refuse a class that overrides a test, or a method that runs tests, anywhere in its method resolution order."""
    above = [dict(vars(base)) for base in cls.__mro__[1:] if issubclass(base, Suite)]  # the nearest wins
    for name, value in ChainMap(*above).items():
        is_contract = name.startswith("test_") or name in ("_expect_failures", "_stay_on_this_machine")
        if is_contract and inspect.getattr_static(cls, name) is not value:
            raise TypeError(
                f"{cls.__name__} overrides {name}, a test of the contract. "
                f"If it cannot pass, say why instead: xfail = {{{name!r}: 'the reason'}}"
            )
