"""How properties are tested, everywhere in the repository.

`make test` tries the same examples each time, so that it fails for a change and never by chance. `make nightly` tries
new ones, twenty times as many. What it finds becomes an `@example` of the test, and so a part of `make test`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import hypothesis
import pytest

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "always-the-same")
TIMES_AS_MANY = 20

# No deadline: how long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("always-the-same", deadline=None, derandomize=True)
hypothesis.settings.register_profile("nightly", deadline=None, print_blob=True)
hypothesis.settings.load_profile(PROFILE)

_SETTINGS = "_hypothesis_internal_use_settings"  # of a test; hypothesis has no public way to change what a test says


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """In the nightly profile, multiply the examples of each test, those that name a number included."""
    if PROFILE != "nightly":
        return
    functions = [item.obj for item in items if isinstance(item, pytest.Function)]
    for test in {getattr(function, "__func__", function) for function in functions}:
        said = getattr(test, _SETTINGS, None)
        if said is not None:
            setattr(test, _SETTINGS, hypothesis.settings(said, max_examples=TIMES_AS_MANY * said.max_examples))
