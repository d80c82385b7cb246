"""Asks another model when one cannot answer, chosen by the cause of the failure."""
