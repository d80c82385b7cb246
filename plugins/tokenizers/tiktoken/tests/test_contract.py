"""This distribution and its tokenizers keep Jackfield's contracts."""

from __future__ import annotations

import pytest

from jackfield.tokenizers import Tokenizer
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites import PluginSuite, TokenizerSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-tiktoken"


class Small(TokenizerSuite):
    @pytest.fixture(autouse=True)
    def _vocabulary(self, settings: dict[str, str]) -> None:
        self._settings = settings

    def make_tokenizer(self) -> Tokenizer:
        """One that reads the small vocabulary: the real ones are not on every machine."""
        host = plain_host()
        made = host.make(host.find("tokenizer", self.component), self._settings, Tokenizer)
        assert isinstance(made, Tokenizer)
        return made


class TestO200kBase(Small):
    component = "jackfield-tiktoken/o200k_base"


class TestCL100kBase(Small):
    component = "jackfield-tiktoken/cl100k_base"
