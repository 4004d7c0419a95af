#!/usr/bin/env bash
# GoogleTest for the native tests: Debian's package, installed here where it is missing and we may.
set -euo pipefail
if [ -e /usr/include/gtest/gtest.h ] || [ -e /usr/local/include/gtest/gtest.h ]; then exit 0; fi
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  apt-get update -qq && apt-get install -y -qq libgtest-dev >/dev/null
else
  echo "GoogleTest is missing: install libgtest-dev (or your system's package) and run again" >&2
  exit 1
fi
