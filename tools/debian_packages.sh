#!/usr/bin/env bash
# Installs Debian packages that make needs, where they are missing and the user is root.
#   tools/debian_packages.sh PACKAGE=FILE...    FILE: what the package brings, as a path below /usr or /usr/local
set -euo pipefail
missing=()
for required in "$@"; do
  file=${required#*=}
  if [ ! -e "/usr/$file" ] && [ ! -e "/usr/local/$file" ]; then missing+=("${required%%=*}"); fi
done
if [ ${#missing[@]} = 0 ]; then exit 0; fi
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  apt-get update -qq && apt-get install -y -qq "${missing[@]}" >/dev/null
else
  echo "missing: install ${missing[*]} (or your system's packages) and run again" >&2
  exit 1
fi
