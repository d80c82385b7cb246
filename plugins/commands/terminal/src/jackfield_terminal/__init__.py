"""`jackfield run` and `jackfield chat`: use agents from a terminal or a script."""
