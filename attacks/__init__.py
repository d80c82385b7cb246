"""Attack Jackfield as strangers would: faults, cuts, breaks, hostile input. `make attack` runs it."""
