"""Turns N-Triples files into columns of term ids for store_bench: encode_triples.py OUT.ids FILE.nt...

OUT holds the columns of subjects, predicates and objects, one after another, as little-endian uint64.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from penstock.core import _native


def main() -> None:
    out, *files = map(Path, sys.argv[1:])
    dictionary = _native.Dictionary()
    parsed = [_native.parse_nquads(dictionary, file.read_bytes()) for file in sorted(files)]
    columns = [
        np.concatenate([getattr(part, name) for part in parsed]) for name in ("subjects", "predicates", "objects")
    ]
    with out.open("wb") as target:
        for column in columns:
            column.astype("<u8").tofile(target)
    print(f"{len(columns[0])} triples, {dictionary.size()} dictionary terms, {dictionary.bytes()} bytes of terms")


if __name__ == "__main__":
    main()
