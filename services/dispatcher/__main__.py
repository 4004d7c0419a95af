"""Run the dispatcher as a process; settings by `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.dispatcher.service import main

sys.exit(main())
