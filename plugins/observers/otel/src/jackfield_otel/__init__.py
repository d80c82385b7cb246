"""OpenTelemetry traces and metrics for runs."""
