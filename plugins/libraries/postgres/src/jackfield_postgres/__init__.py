"""Connect to a PostgreSQL server, with pooled connections and actionable errors."""

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
