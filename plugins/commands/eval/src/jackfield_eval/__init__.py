"""The command `jackfield eval`: how well agents answer a set of cases, and whether they have become worse."""
