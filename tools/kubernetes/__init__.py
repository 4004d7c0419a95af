"""Installs the Helm chart on a real Kubernetes and checks it (`make test-k8s`)."""
