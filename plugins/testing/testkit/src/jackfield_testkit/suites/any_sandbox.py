"""What the tests of all sandboxes share, whatever they run."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar, cast

import pytest

from jackfield.errors import SandboxError
from jackfield_confine.sandboxes import RISKS, Sandbox
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites.base import Suite

S = TypeVar("S", bound=Sandbox)


class AnySandboxSuite(Suite, Generic[S]):
    """The base class of the suites of sandboxes.

    Attributes:
        component: The address of the sandbox: `distribution/name`, or its name where that is unique.
        config: Its settings.
        ability: The base class of what it can run.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, object]] = {}
    ability: ClassVar[Any]

    def make_sandbox(self) -> S:
        """A new sandbox under test. Override it if yours needs more than `config`."""
        host = plain_host()
        made = host.make(host.find("sandbox", self.component), self.config, Sandbox)
        assert isinstance(made, self.ability)
        return cast(S, made)

    @pytest.fixture
    def sandbox(self) -> S:
        """A sandbox that works here."""
        made = self.make_sandbox()
        try:
            made.protection()
        except SandboxError as error:
            pytest.skip(f"it cannot be used here: {error}")
        return made

    def test_what_it_protects_from_is_stated(self, sandbox: S) -> None:
        stated = sandbox.protection()
        assert stated.layer
        assert stated.covers
        assert stated.covers <= set(RISKS)
        assert self.make_sandbox().protection() == stated
