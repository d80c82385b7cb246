"""Distributions that are made for a test."""

from tests.support.site import site

__all__ = ["site"]
