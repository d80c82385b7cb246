"""Test kit for Jackfield plugins.

`jackfield_testkit.server` is a model server whose answers and failures are scripted. `jackfield_testkit.suites`
contains the tests that every plugin and backend must pass, and `jackfield_testkit.fixtures` provides the server as a
pytest fixture. Importing the server loads neither pytest nor the core.
"""
