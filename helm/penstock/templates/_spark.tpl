{{/* Spark's drivers, the adaptor and the bulk load, and their executors. */}}

{{/* "true" where executors are pods: adaptor.spark, bulkLoad */}}
{{- define "penstock.executorPods" -}}
{{- if hasPrefix "k8s://" .master -}}true{{- end -}}
{{- end }}

{{/* Components whose executors are pods, separated by spaces */}}
{{- define "penstock.drivers" -}}
{{- $drivers := list -}}
{{- with .Values.adaptor -}}
{{- if and (eq .mode "spark") (include "penstock.executorPods" .spark) }}{{ $drivers = append $drivers "adaptor" }}{{ end -}}
{{- end -}}
{{- with .Values.bulkLoad -}}
{{- if and .claim (include "penstock.executorPods" .) }}{{ $drivers = append $drivers "bulk-load" }}{{ end -}}
{{- end -}}
{{- join " " $drivers -}}
{{- end }}

{{/* Options of spark-submit: (dict "root" $ "component" "bulk-load" "spark" .Values.bulkLoad) */}}
{{- define "penstock.sparkConf" -}}
{{- $root := .root -}}
{{- $conf := dict "spark.ui.enabled" "false" -}}{{/* it would answer without a token */}}
{{- if include "penstock.executorPods" .spark -}}
{{- $conf = dict
  "spark.ui.enabled" "false"
  "spark.kubernetes.namespace" $root.Release.Namespace
  "spark.kubernetes.container.image" (include "penstock.image" (dict "root" $root "image" .spark.image))
  "spark.kubernetes.container.image.pullPolicy" .spark.image.pullPolicy
  "spark.kubernetes.authenticate.driver.serviceAccountName" (include "penstock.serviceAccountName" .)
  "spark.kubernetes.driver.pod.name" "$(PENSTOCK_INSTANCE)"
  "spark.kubernetes.executor.podTemplateFile" (printf "/run/executor/%s.yaml" .component)
  "spark.driver.host" "$(POD_IP)"
  "spark.authenticate" "true"
  "spark.network.crypto.enabled" "true"
  "spark.io.encryption.enabled" "true" -}}
{{- with $root.Values.flight.tls.existingSecret -}}
{{- $_ := set $conf (printf "spark.kubernetes.executor.secrets.%s" .) "/run/secrets/flight-tls" -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := merge (dict) .spark.conf $conf }}
- --conf={{ $name }}={{ $value }}
{{- end }}
{{- end }}

{{/* What a driver needs beside its pod. (dict "root" $ "component" "bulk-load") */}}
{{- define "penstock.driverRights" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- include "penstock.meta" . | nindent 2 }}
rules:  # what Spark's driver needs for its executors
  - apiGroups: [""]
    resources: [pods, configmaps, services, persistentvolumeclaims]
    verbs: [get, list, watch, create, patch, delete, deletecollection]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "penstock.meta" . | nindent 2 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ include "penstock.fullname" .root }}-{{ .component }}}
subjects:
  - {kind: ServiceAccount, name: {{ include "penstock.serviceAccountName" . }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}

{{/*
The template of an executor's pod, to which Spark adds image, command, resources and the folders for its data:
(dict "root" $ "shared" bool "block" .Values.bulkLoad). Executors meet the restricted profile, like all pods.
*/}}
{{- define "penstock.executorTemplate" -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "penstock.labels" .root | nindent 4 }}
    app.kubernetes.io/component: executor
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- include "penstock.pullSecrets" .root | nindent 2 }}
  securityContext:
    {{- include "penstock.podSecurity" .root | nindent 4 }}
  {{- include "penstock.scheduling" .block | nindent 2 }}
  containers:
    - name: executor
      securityContext: {{ include "penstock.containerSecurity" (dict "root" .root "lock" false) | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: work, mountPath: /data}
        {{- if .shared }}
        - {name: shared, mountPath: /shared}
        {{- end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    - {name: work, emptyDir: {}}
    {{- if .shared }}
    - name: shared
      persistentVolumeClaim: {claimName: {{ .root.Values.bulkLoad.claim }}}
    {{- end }}
{{- end }}
