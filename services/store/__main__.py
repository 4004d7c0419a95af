"""Entry point of the store. Settings: environment variables `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.store.service import main

sys.exit(main())
