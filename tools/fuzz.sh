#!/usr/bin/env bash
# The native fuzz targets, FUZZ_SECONDS (600) each. Needs clang with libFuzzer (Debian: clang).
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v "${CXX:-clang++}" >/dev/null 2>&1; then
  echo "fuzzing needs clang++ (or CXX); the corpus is replayed by the native tests all the same" >&2
  exit 1
fi
exec native/build.sh fuzz "${FUZZ_SECONDS:-600}"
