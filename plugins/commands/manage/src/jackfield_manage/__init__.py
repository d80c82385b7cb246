"""Manage an installation: list, explain, check, install, lock and restore plugins.

Loading plugins does not require this package; see `jackfield.plugins`.
"""
