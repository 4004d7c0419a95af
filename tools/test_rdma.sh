#!/usr/bin/env bash
# The tests over RDMA: the contract suite; whole words; 10,000 lists verified by one-sided READs while their store is written, by their
# offsets and through views of the stored graph; fifty random cases over stores. On this machine where it has a device,
# otherwise in a virtual machine with soft-RoCE (tools/rdma_vm).
# PYTHON names the interpreter of the environment (default: the first python3 on PATH).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
bin=$(dirname "$("$python" -c 'import sys; print(sys.executable)')")
export PATH="$bin:$PATH" PYTHONPATH=libs

if [ ! -e /usr/include/infiniband/verbs.h ] && command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  apt-get update -qq && apt-get install -y -qq --no-install-recommends libibverbs-dev >/dev/null
  PYTHON=python native/build.sh module
fi
if ! python -c 'import sys; from penstock.core._native import built_with_rdma as built; sys.exit(not built())'; then
  echo "test-rdma: NOT RUN: the module was built without RDMA (Debian: apt install libibverbs-dev, then native/build.sh)"
  exit 0
fi
PYTHON=python native/build.sh only dataplane_torn_test
PYTHON=python native/build.sh only remote_torn_test
# pyverbs, for an independent reader: Debian's package is built for Debian's Python, but other CPythons of the same version
# can import it from a folder of its own.
if [ ! -d /usr/lib/python3/dist-packages/pyverbs ] && command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  apt-get install -y -qq --no-install-recommends python3-pyverbs >/dev/null || true
fi
mkdir -p build/pyverbs
ln -sfn /usr/lib/python3/dist-packages/pyverbs build/pyverbs/pyverbs
tests=(bash tools/test_rdma_inside.sh)
if [ -n "$(python -c 'from penstock.core._native import rdma_devices; print(*rdma_devices())')" ]; then
  exec "${tests[@]}"
fi
status=0
tools/rdma_vm/boot.sh -t 2400 env PYTHONPATH=libs PYTHONDONTWRITEBYTECODE=1 PENSTOCK_RDMA_DEVICES=rxe0,rxe1 "${tests[@]}" || status=$?
if [ $status = 77 ]; then
  echo "test-rdma: NOT RUN: no RDMA device here, and no virtual machine that has one (the reason stands above)"
  exit 0
fi
exit $status
