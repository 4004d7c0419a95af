"""Entry point of the query engine. Settings: environment variables `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.query_engine.service import main

sys.exit(main())
