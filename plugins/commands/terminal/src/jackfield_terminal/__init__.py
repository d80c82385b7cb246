"""`jackfield run` and `jackfield chat`: agents for people at a terminal, and for scripts."""
