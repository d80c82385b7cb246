"""`jackfield index`: maintain a knowledge base on disk, built from files and directories."""
