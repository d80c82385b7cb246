"""Base class of all suites. Their tests cannot be overridden, only marked as expected failures with a reason."""

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
    """A set of tests that a subclass inherits in full.

    Attributes:
        level: The contract version that the component satisfies. Newer tests run as well, but their failures are
            reported as expected, so a newer test kit breaks no build. Raise the level once they pass.
        xfail: Tests that are known to fail, with reasons. `"test_a"` covers all parameters, `"test_a[b]"` only one. A
            listed test that passes is a failure, and a parameter that does not exist is an error, so the list stays
            accurate.
    """

    level: ClassVar[str] = "0.1"
    xfail: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _version(cls.level, f"{cls.__name__}.level")
        if "__init__" in cls.__dict__:
            raise TypeError(
                f"{cls.__name__} defines __init__, so pytest would silently skip its tests: remove __init__"
            )
        _refuse_overriding(cls)
        for name, reason in cls.xfail.items():
            if not (name.startswith("test_") and callable(getattr(cls, name.partition("[")[0], None))):
                raise TypeError(f"{cls.__name__}.xfail refers to {name!r}, which is not a test in this class")
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
    """Mark a test as part of the contract since a given version.

    In a suite with a lower level, a failure of the test is expected and its success is not reported. Everything that
    the test uses must be at least as old as the test itself, because a failing fixture is a failure at any level.
    """
    introduced = _version(version, "since")

    def mark(test: Test) -> Test:
        if inspect.iscoroutinefunction(test) or inspect.isgeneratorfunction(test):
            raise TypeError(f"{test.__name__} must be a regular function, because the body of any other would not run")

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
    """Return the suite that a test class subclasses, based on its name, or the class itself if there is none."""
    above = (base for base in cls.__mro__[1:] if issubclass(base, Suite) and base is not Suite)
    return next((base for base in above if base.__name__.endswith("Suite")), cls)


def _version(text: str, what: str) -> Version:
    try:
        return Version(text)
    except (InvalidVersion, TypeError):
        raise TypeError(f"{what} must be a version such as '0.1', got {text!r}") from None


def _refuse_stale(expected: Mapping[str, str], request: pytest.FixtureRequest) -> None:
    """Fail if `xfail` names a nonexistent parameter of this test. Only a complete run can detect this."""
    test = getattr(request.node, "originalname", request.node.name)
    named = {name for name in expected if name.startswith(f"{test}[")}
    if not named or _is_narrowed(request.config):
        return
    existing = {item.name for item in request.session.items if getattr(item, "cls", None) is request.cls}
    if stale := named - existing:
        pytest.fail(f"{request.cls.__name__}.xfail refers to parameters that do not exist: {', '.join(sorted(stale))}")


def _is_narrowed(config: pytest.Config) -> bool:
    """Return True if only some tests were selected for the run."""
    options = ("keyword", "markexpr", "deselect", "lf", "stepwise")
    return any(config.getoption(name, None) for name in options) or any("[" in given for given in config.args)


def _refuse_overriding(cls: type[Suite]) -> None:
    """Reject a class in whose method resolution order a test, or a method that runs tests, is overridden."""
    above = [dict(vars(base)) for base in cls.__mro__[1:] if issubclass(base, Suite)]  # the nearest wins
    for name, value in ChainMap(*above).items():
        is_contract = name.startswith("test_") or name in ("_expect_failures", "_stay_on_this_machine")
        if is_contract and inspect.getattr_static(cls, name) is not value:
            raise TypeError(
                f"{cls.__name__} overrides {name}, which belongs to the contract. "
                f"If the test cannot pass, give a reason instead: xfail = {{{name!r}: 'the reason'}}"
            )
