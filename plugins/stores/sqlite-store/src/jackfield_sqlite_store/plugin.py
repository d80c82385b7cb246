"""Components provided by this package."""

from __future__ import annotations

from jackfield.plugins import StoreSpec, hook


@hook.stores
def stores() -> list[StoreSpec]:
    """Offer the `sqlite` store."""
    return [
        StoreSpec(
            name="sqlite",
            target="jackfield_sqlite_store.store:SQLiteStore",
            config="jackfield_sqlite_store.store:SQLiteStoreConfig",
            summary="Keeps the runs of agents in one SQLite file on this machine.",
            effects=frozenset({"files"}),
        )
    ]
