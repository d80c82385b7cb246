"""Tests for Jackfield plugins.

`jackfield_testkit.server` has a model server that answers and fails as scripted; `jackfield_testkit.suites` has the
tests that every plugin and every backend must pass; `jackfield_testkit.fixtures` has the server as a pytest fixture.
Importing the server loads neither pytest nor the core.
"""
