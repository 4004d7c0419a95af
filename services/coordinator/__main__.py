"""Run the coordinator as a process; settings by `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.coordinator.service import main

sys.exit(main())
