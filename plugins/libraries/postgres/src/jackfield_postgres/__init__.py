"""The way to a PostgreSQL server: kept connections, and errors that say what to do."""

from jackfield_postgres.database import Address, Connection, Database, LostConnectionError, Row, alone_in

__all__ = ["Address", "Connection", "Database", "LostConnectionError", "Row", "alone_in"]
