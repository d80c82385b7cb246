"""A searcher is made by its name, with its settings, and with the host if it asks for others."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.errors import BrokenPluginError, PluginNotFoundError
from jackfield.retrieval import make_searcher

LIGHT = """
from jackfield.plugins import SearcherSpec, hook

@hook.searchers
def searchers():
    return [SearcherSpec(name=name, target=f"acme_search:{target}") for name, target in
            (("plain", "Plain"), ("asking", "Asking"), ("none", "dict"))]
"""
HEAVY = """
from jackfield.retrieval import Searcher
dict = dict

class Plain(Searcher):
    async def search(self, query, corpus, *, limit):
        return []

class Asking(Plain):
    def __init__(self, cfg=None, *, host=None):
        super().__init__(cfg)
        self.host = host
"""


def test_a_searcher_gets_its_settings_and_the_host_if_it_takes_one(site: Any) -> None:
    entries = {f"searcher.{name}": "acme_light" for name in ("plain", "asking", "none")}
    site.add("acme-search", entries, modules={"acme_light": LIGHT, "acme_search": HEAVY})
    host = site.host()
    assert make_searcher("plain", {"depth": 3}, host=host).cfg == {"depth": 3}
    asking = make_searcher("acme-search/asking", host=host)
    assert (asking.cfg, asking.host) == ({}, host)  # type: ignore[attr-defined]
    with pytest.raises(BrokenPluginError, match="not a subclass of"):
        make_searcher("none", host=host)
    with pytest.raises(PluginNotFoundError):
        make_searcher("gone", host=host)
