#!/usr/bin/env bash
# What tools/test_rdma.sh runs where there is a device. Tests that are skipped here are a failure: nothing may pass unseen.
set -euo pipefail
cd "$(dirname "$0")/.."
PENSTOCK_TORN_READS=${PENSTOCK_TORN_READS:-10000} build/native-test/dataplane_torn_test --gtest_filter='*Rdma' | tee /tmp/torn.log
! grep -q SKIPPED /tmp/torn.log
# Only the suite's own conftest: the others import what takes half a minute under emulation.
python -m pytest tests/contract/dataplane --confcutdir=tests/contract/dataplane -k "rdma or choice" -p no:cacheprovider --color=no -rs
