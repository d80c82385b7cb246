"""`python -m jackfield`."""

import sys

from jackfield.cli.main import main

sys.exit(main())
