"""Traces and metrics of runs for OpenTelemetry."""
