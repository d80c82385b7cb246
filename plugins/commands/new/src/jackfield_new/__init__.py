"""`jackfield new`: create a plugin from the template in this package."""
