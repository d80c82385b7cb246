"""The fixture is there for who asks for it, and for nobody else."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

ASKS = """
from urllib.request import urlopen

pytest_plugins = ["jackfield_testkit.fixtures"]


class TestFixture:
    def test_it_is_a_running_server(self, fake_openai):
        assert urlopen(f"{fake_openai.url}/models").status == 200
"""


def test_naming_the_plugin_gives_the_fixture(run_suites: Callable[..., Any]) -> None:
    outcomes = run_suites(ASKS, ["TestFixture"])
    assert outcomes.of("TestFixture", "passed") == {"test_it_is_a_running_server"}


def test_installing_the_kit_registers_nothing_with_pytest() -> None:
    assert list(metadata.distribution("jackfield-testkit").entry_points) == []
