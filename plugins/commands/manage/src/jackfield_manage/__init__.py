"""Manage an installation: list, explain, check, install, lock and restore plugins.

Loading plugins does not need this package; `jackfield.plugins` does that.
"""
