"""Run the query engine as a process; settings by `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.query_engine.service import main

sys.exit(main())
