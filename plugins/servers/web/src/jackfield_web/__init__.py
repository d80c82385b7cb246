"""The web page of Jackfield: a face for people."""
