#!/usr/bin/env bash
# What a pod of Spark's runs: `executor`, as Spark on Kubernetes asks for it by SPARK_… variables; anything else as it is.
set -euo pipefail
if [ "${1:-}" != executor ]; then exec "$@"; fi
options=()
for name in $(compgen -v SPARK_JAVA_OPT_ | sort -t_ -k4 -n); do options+=("${!name}"); done
exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" "${options[@]}" -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
  -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*${SPARK_CLASSPATH:+:$SPARK_CLASSPATH}" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID:-0}" --podName "${SPARK_EXECUTOR_POD_NAME:-}"
