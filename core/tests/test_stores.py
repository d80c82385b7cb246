"""The base class of stores, and the way from the setting of an agent to its store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jackfield.errors import ConfigError, PluginNotFoundError, StoreError
from jackfield.stores import RUNNING, Store, StoredRun, load_store


class Plain(Store):
    """Has only the methods that each store must have."""

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int: ...  # type: ignore[empty-body]

    async def hold(self, run_id: str) -> int: ...  # type: ignore[empty-body]

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None: ...

    async def release(self, run_id: str, hold: int) -> None: ...

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]: ...  # type: ignore[empty-body]

    async def runs(self, **_: Any) -> list[StoredRun]: ...  # type: ignore[override, empty-body]

    async def delete(self, run_id: str) -> None: ...

    def recorder(self, agent: object) -> Any: ...


class Named(Plain):
    name = "acme"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda store: store.search("tide", owner="ada", limit=3), "does not support searching runs"),
        (lambda store: store.rename("r", "title"), "does not support renaming runs"),
        (lambda store: store.send("r", "text"), "does not support signals"),
        (lambda store: store.listen(), "does not support signals"),
    ],
    ids=["search", "rename", "send", "listen"],
)
@pytest.mark.parametrize("kind", [Plain, Named], ids=["without a name", "with a name"])
def test_a_store_says_by_name_what_it_does_not_offer(
    call: Callable[[Store], Any], text: str, kind: type[Plain]
) -> None:
    async def main() -> None:
        await call(kind())

    with pytest.raises(StoreError) as caught:
        asyncio.run(main())
    assert str(caught.value) == f"the store {'acme' if kind is Named else 'Plain'} {text}"


def test_a_store_records_content_waits_half_a_minute_and_recovers_nothing_unless_it_says_so() -> None:
    store = Plain()
    assert (store.content, store.patience_s, store.recover, store.reports_writes) == (True, 30.0, False, False)
    assert asyncio.run(store.foreign_file()) is None
    asyncio.run(store.aclose())


def test_a_run_is_new_and_has_nothing_but_its_id_unless_more_is_said() -> None:
    run = StoredRun(run_id="r")
    texts = (run.agent, run.model, run.session, run.parent, run.owner, run.title)
    assert (texts, run.state, run.is_held) == (("",) * 6, "running", False)
    assert (run.began, run.changed, run.entries) == (0.0, 0.0, 0)


LIGHT = """
from jackfield.plugins import StoreSpec, hook

@hook.stores
def stores(): return [StoreSpec(name="kept", target="acme_heavy:Kept", config="acme_heavy:Own")]
"""
HEAVY = """
from jackfield.config import Config
from jackfield.stores import Store

class Own(Config):
    path: str = "default"
    keep_days: float | None = None

class Kept(Store):
    config_class = Own

for name in Store.__abstractmethods__:
    setattr(Kept, name, lambda *_: None)
Kept.__abstractmethods__ = frozenset()
"""


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("kept", ("file", 9)),
        ("acme/kept", ("file", 9)),
        ({"name": "kept"}, ("file", 9)),
        ({"name": "kept", "path": "passed"}, ("passed", 9)),
        ({"name": "kept", "keep_days": None}, ("file", None)),
    ],
    ids=["a name", "an address", "a dict", "another setting", "a setting that is taken back"],
)
def test_a_store_has_the_settings_of_the_users_file_except_those_that_are_passed(
    site: Any, entry: Any, expected: tuple[object, ...]
) -> None:
    site.add("acme", {"store.kept": "acme_light"}, modules={"acme_light": LIGHT, "acme_heavy": HEAVY})
    host = site.host(options={"store.acme/kept": {"path": "file", "keep_days": 9}, "tool.kept": {"path": "no"}})
    before = dict(entry) if isinstance(entry, dict) else entry
    store: Any = load_store(entry, host)
    assert (store.config.path, store.config.keep_days) == expected
    assert entry == before, "the caller's dict stays as it is"


def test_a_store_that_was_made_is_used_as_it_is_and_a_missing_one_is_named(site: Any) -> None:
    store = Plain()
    assert load_store(store, site.host()) is store
    with pytest.raises(PluginNotFoundError, match="gone"):
        load_store("gone", site.host())
    for wrong in (None, 5, ["kept"], {"path": "x"}, {"name": 5}, {}):
        with pytest.raises(ConfigError, match="store must be a store, a store's name, or a dict with `name`"):
            load_store(wrong, site.host())
