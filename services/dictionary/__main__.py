"""Run the dictionary as a process; settings by `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.dictionary.service import main

sys.exit(main())
