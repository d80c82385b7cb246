"""Connect to a PostgreSQL server: pooled connections, and errors that say what to do."""

from jackfield_postgres.database import (
    Address,
    Connection,
    Database,
    LostConnectionError,
    OwnConnection,
    Row,
    alone_in,
    is_passing,
)

__all__ = [
    "Address",
    "Connection",
    "Database",
    "LostConnectionError",
    "OwnConnection",
    "Row",
    "alone_in",
    "is_passing",
]
