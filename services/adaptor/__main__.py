"""Entry point of the adaptor. Settings: environment variables `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.adaptor.service import main

sys.exit(main())
