"""The layout of a 64-bit term id: a tag in the upper 4 bits, a payload in the lower 60 (native/src/rdf/term.hpp)."""

from __future__ import annotations

from typing import Final

import numpy as np

TAG_SHIFT: Final = np.uint64(60)
PAYLOAD: Final = np.uint64((1 << 60) - 1)
TAG_IRI: Final = np.uint64(0)
TAG_BLANK: Final = np.uint64(1)
TAG_LITERAL: Final = np.uint64(2)
"""Tag of literals with an entry in the dictionary. Higher tags belong to inline literals and local terms."""
TAG_LOCAL: Final = np.uint64(11)
"""Tag of terms that an execution computes. These ids are valid only in the results of the execution."""
