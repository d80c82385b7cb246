"""Run store for PostgreSQL."""
