"""Components provided by this package."""

from __future__ import annotations

from jackfield.plugins import StoreSpec, hook


@hook.stores
def stores() -> list[StoreSpec]:
    """Offer the `postgres` store."""
    return [
        StoreSpec(
            name="postgres",
            target="jackfield_postgres_store.store:PostgresStore",
            config="jackfield_postgres_store.store:PostgresStoreConfig",
            summary="Keeps the runs of agents in PostgreSQL, for any number of machines.",
            secrets=("JACKFIELD_STORE_DSN",),
            effects=frozenset({"network"}),
        )
    ]
