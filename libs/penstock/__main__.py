"""`python -m penstock` is the command line."""

import sys

from penstock.cli import main

sys.exit(main())
