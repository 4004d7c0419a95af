"""Run the store as a process; settings by `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.store.service import main

sys.exit(main())
