"""The command `jackfield index`: a knowledge base on disk, built from files and folders."""
