"""Run store in an SQLite file."""
