"""Run the adaptor as a process; settings by `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.adaptor.service import main

sys.exit(main())
