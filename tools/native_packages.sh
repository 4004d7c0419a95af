#!/usr/bin/env bash
# GoogleTest and Google Benchmark for the native tests and micro-benchmarks: Debian's packages, installed where they are
# missing and the user is root.
set -euo pipefail
missing=()
for package in gtest benchmark; do
  header=$package/$package.h
  if [ ! -e "/usr/include/$header" ] && [ ! -e "/usr/local/include/$header" ]; then missing+=("lib$package-dev"); fi
done
if [ ${#missing[@]} = 0 ]; then exit 0; fi
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  apt-get update -qq && apt-get install -y -qq "${missing[@]}" >/dev/null
else
  echo "missing: install ${missing[*]} (or your system's packages) and run again" >&2
  exit 1
fi
