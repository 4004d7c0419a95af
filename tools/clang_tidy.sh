#!/usr/bin/env bash
# clang-tidy over the native sources, with the compile commands of a test build.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(dirname "$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)')")
PATH="$bin:$PATH"
cmake -S . -B build/tidy -G Ninja -DPENSTOCK_MODULE=OFF -DPENSTOCK_TESTS=OFF -DCMAKE_BUILD_TYPE=Release >/dev/null
find native/src -name '*.cpp' -print0 | xargs -0 -P 2 -n 4 clang-tidy -p build/tidy --quiet 2>/dev/null
