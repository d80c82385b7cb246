"""What can succeed is tried again, by whatever asks a server, as often as everywhere else."""

from __future__ import annotations

from importlib import import_module

import pytest

from jackfield.config import DEFAULT_RETRIES, GenerateConfig
from jackfield.hookspecs import KINDS
from jackfield.plugins import ComponentSpec, default_host


def configurations() -> dict[str, type]:
    """The classes of settings of everything installed that says how often it asks again, by its address."""
    host = default_host()
    found = {}
    for row in host.catalog.rows:
        target = host.spec_of(row, ComponentSpec).config if row.kind in KINDS else None
        if target:
            module, _, name = target.partition(":")
            config = getattr(import_module(module), name)
            if "max_retries" in config.model_fields:
                found[row.id] = config
    return found


def test_settings_that_say_how_often_say_the_same(subtests: pytest.Subtests) -> None:
    found = configurations()
    assert {"embedder.openai", "embedder.dashscope", "searcher.dashscope_rerank"} <= found.keys()
    for address, config in {**found, "generate_cfg": GenerateConfig}.items():
        with subtests.test(address):
            assert config.model_fields["max_retries"].default == DEFAULT_RETRIES
