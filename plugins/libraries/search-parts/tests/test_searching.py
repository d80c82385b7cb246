"""A searcher is made by its name, with its settings, and with the host if it asks for others."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.errors import BrokenPluginError, PluginNotFoundError
from jackfield_search_parts.searching import make_searcher
from jackfield_testkit.site import site

__all__ = ["site"]

LIGHT = """
from jackfield.plugins import SearcherSpec, hook

@hook.searchers
def searchers():
    return [SearcherSpec(name=name, target=f"acme_search:{target}") for name, target in
            (("plain", "Plain"), ("asking", "Asking"), ("none", "dict"), ("hybrid_search", "Asking"))]
"""
HEAVY = """
from jackfield_search_parts.searching import Searcher
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


def test_a_searcher_with_the_name_of_one_of_ours_is_handed_no_key(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    entries = dict.fromkeys(("searcher.asking", "searcher.hybrid_search"), "acme_light")
    site.add("acme-search", entries, modules={"acme_light": LIGHT, "acme_search": HEAVY})
    seen = {
        name: make_searcher(name, host=site.host()).host.settings.secret("OPENAI_API_KEY")  # type: ignore[attr-defined]
        for name in ("asking", "hybrid_search")
    }
    assert seen == {"asking": "sk-1", "hybrid_search": None}
