"""The command `jackfield eval`: evaluate agents on a set of cases, and find regressions."""
