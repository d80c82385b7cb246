"""An observer that logs the steps of runs."""
