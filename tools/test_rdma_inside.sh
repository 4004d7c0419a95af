#!/usr/bin/env bash
# What tools/test_rdma.sh runs where there is a device. A test that is skipped here is a failure: nothing passes unseen.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export PENSTOCK_TORN_READS=${PENSTOCK_TORN_READS:-10000}
build/native-test/dataplane_torn_test --gtest_filter='*Rdma' | tee "$log"
build/native-test/remote_torn_test --gtest_filter='*Rdma' | tee -a "$log"
others=()
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}build/pyverbs
if ! why=$(python -c 'import pyverbs.device' 2>&1); then
  echo "test-rdma: NOT RUN: the reader with pyverbs, for it cannot be imported (Debian: python3-pyverbs): ${why##*$'\n'}"
  others=(--ignore tests/contract/dataplane/test_second_reader.py)
fi
# Only the suite's own conftest: the others import what takes half a minute under emulation.
python -m pytest tests/contract/dataplane "${others[@]}" --confcutdir=tests/contract/dataplane -k "rdma or choice" -rs -p no:cacheprovider \
  --color=no | tee -a "$log"
# Fifty random cases over three stores; `property.case` ends with an error where a store is read otherwise than by RDMA.
PYTHONPATH=libs:tests python -m property.case --quiet --stores 3 --transport rdma "${PENSTOCK_RDMA_CASES:-28000-28049}"
if grep -qiE 'skipped' "$log"; then
  echo "test-rdma: tests were skipped although there is a device" >&2
  exit 1
fi
