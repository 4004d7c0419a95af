"""Entry point of the coordinator. Settings: environment variables `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.coordinator.service import main

sys.exit(main())
