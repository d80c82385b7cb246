"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jackfield.processors import Processor
from jackfield_budget.processor import Budget
from jackfield_testkit.suites import PluginSuite, ProcessorSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-budget"


class TestUnknownPrices(ProcessorSuite):
    """It says once that no price is known."""

    component = "jackfield-budget/budget"
    texts: ClassVar[Sequence[str]] = ("An answer.",)
    harmless = "Another one, with 数据 and a 🙂."
    max_held = 0


class TestLimit(ProcessorSuite):
    """It counts."""

    component = "jackfield-budget/budget"
    config: ClassVar[Mapping[str, Any]] = {"limit": "1000000", "unknown": "say"}
    texts: ClassVar[Sequence[str]] = ("An answer.",)
    max_held = 0

    def make_processor(self) -> Processor:
        """One that has a price for the model of the suite, so that it sets money aside. Its answers report no cost."""
        rows = [{"models": ["other"], "currency": "USD", "valid_from": "2020-01-01", "input": "1", "output": "1"}]
        return Budget(**self.config, prices=rows)
