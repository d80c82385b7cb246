"""Helpers for the tests of this repository; nothing here is published."""
