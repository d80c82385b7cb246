"""Manage an installation: what is installed and why, whether it works, who agreed to it, and how to restore it.

Loading plugins does not need this package; `jackfield.plugins` does that.
"""
