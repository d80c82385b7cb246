"""What all suites share: their tests cannot be overridden, only be expected to fail, with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest


class Suite:
    """A set of tests that a subclass inherits whole.

    Attributes:
        xfail: Tests that are known to fail, each with the reason. One that passes nevertheless is a failure, so that
            the list stays true.
    """

    xfail: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in cls.__dict__:
            if name.startswith("test_") and any(hasattr(base, name) for base in cls.__bases__):
                raise TypeError(
                    f"{cls.__name__} overrides {name}, a test of the contract. "
                    f"If it cannot pass, say why instead: xfail = {{{name!r}: 'the reason'}}"
                )
        for name, reason in cls.xfail.items():
            if not (name.startswith("test_") and callable(getattr(cls, name, None))):
                raise TypeError(f"{cls.__name__}.xfail names {name!r}, which is no test of it")
            if not reason.strip():
                raise TypeError(f"{cls.__name__}.xfail[{name!r}] needs a reason")

    @pytest.fixture(autouse=True)
    def _expect_failures(self, request: pytest.FixtureRequest) -> None:
        name = getattr(request.node, "originalname", request.node.name)
        if name in self.xfail:
            request.applymarker(pytest.mark.xfail(reason=self.xfail[name], strict=True))
