"""Entry point of the dispatcher. Settings: environment variables `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.dispatcher.service import main

sys.exit(main())
