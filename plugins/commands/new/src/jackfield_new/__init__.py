"""`jackfield new`: makes a plugin from the template that travels with this distribution."""
