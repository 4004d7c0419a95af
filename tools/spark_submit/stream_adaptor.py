"""The stream adaptor for spark-submit, which takes a Python file: `penstock adaptor --spark`."""

import sys

from penstock.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["adaptor", "--spark"]
    sys.exit(main())
