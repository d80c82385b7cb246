"""Reads mails for Jackfield."""
