"""Tests of the repository as a whole, and what tests of several distributions share."""
