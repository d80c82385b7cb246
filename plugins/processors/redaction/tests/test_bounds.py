"""A pattern that tries ever more ways to match is stopped, and nothing is passed on."""

from __future__ import annotations

import pytest

from jackfield.errors import ConfigError
from jackfield_redaction.config import RedactionConfig
from jackfield_redaction.scanner import Finder


@pytest.mark.timeout(30)
@pytest.mark.parametrize("regex", ["(?:a|aa)+!", "(?:a|aa|aaa)+!"])
def test_a_match_that_takes_too_long_is_an_error_and_not_a_pass(regex: str) -> None:
    config = RedactionConfig.parse({"patterns": [{"name": "mine", "regex": regex, "max_length": 500}]})
    with pytest.raises(ConfigError, match=r"the pattern 'mine' takes more than 20 ms for 500 characters"):
        Finder(config).next_value("a" * 2000, 0, final=True)
