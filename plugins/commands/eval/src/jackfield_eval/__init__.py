"""`jackfield eval`: evaluate agents on a set of cases, and detect regressions."""
