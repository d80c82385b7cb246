"""Distributions that are made for a test."""

from jackfield_testkit.site import site

__all__ = ["site"]
