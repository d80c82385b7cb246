"""Common parts of all sandbox suites, whatever the sandbox runs."""

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
    """Base class of sandbox suites.

    Attributes:
        component: The sandbox to test, as `distribution/name`, or only the name if it is unique.
        config: The sandbox's settings.
        ability: The base class for the kind of code that the sandbox can run.
        unusable_because: The reason why the sandbox may be unusable on this machine, such as a missing program. If the
            sandbox is unusable, its tests are skipped with this reason, or fail if there is none.
        must_cover: Risks that the sandbox must cover wherever it works. Risks that it does not claim to cover are not
            tested, so without this list, a sandbox that detects a broken defence would skip the tests for it.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, object]] = {}
    ability: ClassVar[Any]
    unusable_because: ClassVar[str] = ""
    must_cover: ClassVar[frozenset[Risk]] = frozenset()

    def make_sandbox(self) -> S:
        """Create a sandbox to test. Override this if yours needs more than `config`."""
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
                f"the sandbox reports that it cannot be used here, so it cannot be tested: {error}. If this "
                "is expected on some machines, give the reason in unusable_because"
            )
        return made

    def test_what_it_protects_from_is_stated(self, sandbox: S) -> None:
        stated = sandbox.protection()
        assert stated.layer
        assert stated.covers
        assert stated.covers <= set(RISKS)
        assert not self.must_cover - stated.covers, "the sandbox no longer covers the risks in must_cover"
        assert self.make_sandbox().protection() == stated
