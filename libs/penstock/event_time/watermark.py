"""The initial watermark."""

from __future__ import annotations

from typing import Final

NEVER: Final = -(1 << 63)
"""The watermark of a stream without progress. The core has the same constant (source.hpp, kNever)."""
