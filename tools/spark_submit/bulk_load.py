"""The bulk load for spark-submit, which takes a Python file: the arguments are those of `penstock load --spark`."""

import sys

from penstock.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["load", "--spark"]
    sys.exit(main())
