"""Entry point of the dictionary. Settings: environment variables `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.dictionary.service import main

sys.exit(main())
