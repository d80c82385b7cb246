"""Making a component: with its settings, as its base says, or an error that names the fault."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jackfield.errors import BrokenPluginError, ConfigError
from tests.support.site import light

HEAVY = """
from jackfield.config import Config
from core_base import Base

class T(Base):
    def __init__(self, size=1):
        if size > 5:
            raise ValueError("too large")
        self.size = size

class Refuses(Base):
    def __init__(self):
        from jackfield.errors import ConfigError
        raise ConfigError("for the caller")

class Settings(Config):
    size: int = 1
"""


@pytest.mark.parametrize(
    ("target", "config", "cfg", "error", "said"),
    [
        ("acme_heavy:T", True, {"size": 3}, None, ""),
        ("acme_heavy:T", False, {}, None, ""),
        ("acme_heavy:T", False, {"size": 3, "b": 1}, ConfigError, "tool 'acme/x' takes no settings; got 'size', 'b'"),
        ("acme_heavy:T", True, {"size": "x"}, ConfigError, "settings of tool 'acme/x'"),
        ("acme_heavy:T", True, {"size": 6}, BrokenPluginError, "making tool.x failed (ValueError: too large)"),
        ("acme_heavy:Refuses", False, {}, ConfigError, "for the caller"),
        ("json:loads", False, {}, BrokenPluginError, "making tool.x failed (TypeError"),
        ("builtins:dict", False, {}, BrokenPluginError, "acme: tool.x is not a core_base.Base"),
    ],
)
def test_a_component_is_made_with_its_settings_or_the_fault_is_told(
    site: Any, target: str, config: bool, cfg: dict[str, Any], error: type[Exception] | None, said: str
) -> None:
    more = ', config="acme_heavy:Settings"' if config else ""
    modules = {"acme_light": light(target=target, more=more), "acme_heavy": HEAVY, "core_base": "class Base: ..."}
    site.add("acme", {"tool.x": "acme_light"}, modules=modules)
    import core_base  # type: ignore[import-not-found]

    host = site.host()
    row = host.find("tool", "x")
    if error is None:
        assert host.make(row, cfg, core_base.Base).size == cfg.get("size", 1)
        return
    with pytest.raises(error) as caught:
        host.make(row, cfg, core_base.Base)
    assert said in str(caught.value)


def test_a_base_may_say_how_a_component_is_made(site: Any) -> None:
    site.add("acme", {"tool.x": "acme_light"}, modules={
        "acme_light": light(target="acme_heavy:make"),
        "acme_heavy": "from test_base import Made\ndef make(): return Made()",
        "test_base": "class Made: ...\nclass Base(Made):\n    @classmethod\n    def factory_of(cls, target, spec):\n"
        "        return lambda: (spec.name, target())",
    })  # fmt: skip
    import test_base  # type: ignore[import-not-found]

    host = site.host()
    row = host.find("tool", "x")
    with pytest.raises(BrokenPluginError, match=re.escape("tool.x is not a test_base.Base")):
        host.make(row, {}, test_base.Base)
    assert isinstance(host.make(row, {}, test_base.Made), test_base.Made)
