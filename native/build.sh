#!/usr/bin/env bash
# Builds the native module into libs/penstock/core (and, with "test", the native tests, which it runs).
#   native/build.sh            the module, Release
#   native/build.sh test       tests, Release           native/build.sh asan | tsan    tests under sanitizers
#   native/build.sh bench [T]  micro-benchmarks (or one of them; Google Benchmark), in build/native-bench
#   native/build.sh only NAME  one test, Release, not run
#   native/build.sh fuzz [S]   each fuzz target for S seconds (600), with clang
# PYTHON names the interpreter that has nanobind (default: the first python on PATH).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
mode=${1:-module}
launcher=()
if command -v ccache >/dev/null 2>&1; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
generator=()
if command -v ninja >/dev/null 2>&1 || "$python" -c 'import ninja' 2>/dev/null; then generator=(-G Ninja); fi
# -O1: compiles faster than -O2, and the sanitizers' reports stay readable.
checked=(-DPENSTOCK_MODULE=OFF -DPENSTOCK_TESTS=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1")
bin=$(dirname "$("$python" -c 'import sys; print(sys.executable)')")
PATH="$bin:$PATH"
configure() { cmake -S . -B "$1" "${generator[@]}" "${launcher[@]}" "${@:2}" >/dev/null; }
case "$mode" in
  module)
    configure build/module -DPython_EXECUTABLE="$bin/python"
    cmake --build build/module --target _native
    # By renaming: processes that run go on with the file that they have mapped. Written over in place it would change
    # under them, and whichever thread comes next ends them.
    for module in build/module/_native*.so; do
      cp "$module" "libs/penstock/core/.$(basename "$module").new"
      mv -f "libs/penstock/core/.$(basename "$module").new" "libs/penstock/core/$(basename "$module")"
    done ;;
  test)
    configure build/native-test -DPENSTOCK_MODULE=OFF -DPENSTOCK_TESTS=ON
    cmake --build build/native-test
    ctest --test-dir build/native-test --output-on-failure -R "${2:-.}" ;;
  only)
    configure build/native-test -DPENSTOCK_MODULE=OFF -DPENSTOCK_TESTS=ON
    cmake --build build/native-test --target "$2" ;;
  asan)
    configure build/native-asan "${checked[@]}" -DPENSTOCK_SANITIZE=address,undefined
    cmake --build build/native-asan
    ctest --test-dir build/native-asan --output-on-failure -R "${2:-.}" ;;
  tsan)
    configure build/native-tsan "${checked[@]}" -DPENSTOCK_SANITIZE=thread
    cmake --build build/native-tsan
    ctest --test-dir build/native-tsan --output-on-failure -R "${2:-.}" ;;
  bench)
    configure build/native-bench -DPENSTOCK_MODULE=OFF -DPENSTOCK_BENCH=ON
    cmake --build build/native-bench --target "${2:-all}" ;;
  fuzz)
    CXX=${CXX:-clang++} configure build/native-fuzz -DPENSTOCK_MODULE=OFF -DPENSTOCK_FUZZ=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPENSTOCK_SANITIZE=address,undefined
    cmake --build build/native-fuzz --target fuzz_targets
    for target in native/tests/fuzz/*_fuzz.cpp; do
      name=$(basename "$target" .cpp)
      corpus=native/tests/fuzz/corpus/${name%_fuzz}
      grown=build/native-fuzz/corpus/${name%_fuzz}
      mkdir -p "$grown"
      # What libFuzzer learns stays in build/; a crash is written there too, and belongs into the corpus once understood.
      build/native-fuzz/"$name" -max_total_time="${2:-600}" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix=build/native-fuzz/ "$grown" "$corpus"
    done ;;
  *) echo "unknown mode $mode" >&2; exit 2 ;;
esac
