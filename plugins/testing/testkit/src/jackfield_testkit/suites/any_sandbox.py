"""Share the parts of the suites of all sandboxes, independent of what they run."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar, cast

import pytest

from jackfield.errors import SandboxError
from jackfield.sandboxes import RISKS, Risk, Sandbox
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites.base import Suite

S = TypeVar("S", bound=Sandbox)


class AnySandboxSuite(Suite, Generic[S]):
    """The base class of the suites of sandboxes.

    Attributes:
        component: The address of the sandbox: `distribution/name`, or its name where that is unique.
        config: The settings of the sandbox.
        ability: The base class of the things it can run.
        unusable_because: The reason why the sandbox may be unusable on this machine, such as a missing program. Its
            tests are then skipped with this reason; without one they fail.
        must_cover: The risks that it covers wherever it works. A risk that it does not claim to cover is not tested, so
            a broken defence that the sandbox notices itself would otherwise skip its own tests.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, object]] = {}
    ability: ClassVar[Any]
    unusable_because: ClassVar[str] = ""
    must_cover: ClassVar[frozenset[Risk]] = frozenset()

    def make_sandbox(self) -> S:
        """Return a new sandbox under test. Override it if yours needs more than `config`."""
        host = plain_host()
        made = host.make(host.find("sandbox", self.component), self.config, Sandbox)
        assert isinstance(made, self.ability)
        return cast(S, made)

    @pytest.fixture
    def sandbox(self) -> S:
        """Return a sandbox that works on this machine."""
        made = self.make_sandbox()
        try:
            made.protection()
        except SandboxError as error:
            if self.unusable_because:
                pytest.skip(f"{self.unusable_because}: {error}")
            pytest.fail(
                f"the sandbox says that it cannot be used here, so nothing of it is tested: {error}. If that may be so "
                "on some machines, say why in unusable_because"
            )
        return made

    def test_what_it_protects_from_is_stated(self, sandbox: S) -> None:
        stated = sandbox.protection()
        assert stated.layer
        assert stated.covers
        assert stated.covers <= set(RISKS)
        assert not self.must_cover - stated.covers, "it no longer covers what must_cover names"
        assert self.make_sandbox().protection() == stated
