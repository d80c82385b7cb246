"""Attack Jackfield like a stranger would: with faults, cuts, breaks and hostile input. Run with `make attack`."""
