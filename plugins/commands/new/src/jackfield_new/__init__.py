"""`jackfield new`: makes a plugin from the template that is part of this package."""
