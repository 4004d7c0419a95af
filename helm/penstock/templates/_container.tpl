{{/* The container of a service: (dict "root" $ "component" "store" "block" .Values.store) */}}

{{- define "penstock.port" -}}
{{- ternary 8081 8080 (and (eq .component "query-engine") .root.Values.colocate) -}}
{{- end }}

{{/*
Seconds that a store or query engine has to hand over its work: two thirds of the pod's grace period. The rest is for
preStop, an evaluation that runs, and closing.
*/}}
{{- define "penstock.leave" -}}
{{- $block := .root.Values.colocate | ternary .root.Values.store .block -}}
{{- max 1 (div (mul 2 (int $block.terminationGracePeriodSeconds)) 3) -}}
{{- end }}

{{- define "penstock.container" -}}
{{- $root := .root -}}
{{- $spark := and (eq .component "adaptor") (eq $root.Values.adaptor.mode "spark") -}}
{{- $image := $spark | ternary $root.Values.adaptor.spark.image $root.Values.image -}}
{{- $rdma := and $root.Values.rdma.enabled (has .component (list "store" "query-engine")) -}}
{{- $port := include "penstock.port" . | int -}}
{{- $scheme := include "penstock.scheme" $root | upper -}}
{{- $http := ternary "http-engine" "http" (eq $port 8081) -}}
- name: {{ .component }}
  image: {{ include "penstock.image" (dict "root" $root "image" $image) }}
  imagePullPolicy: {{ $image.pullPolicy }}
  {{- if $root.Values.diagnosticMode }}
  command: [sleep, infinity]
  {{- else if $spark }}
  args:
    - spark-submit
    - --master={{ .block.spark.master }}
    - --deploy-mode=client
    - --driver-memory={{ .block.spark.memory }}
    {{- include "penstock.sparkConf" (dict "root" $root "component" .component "spark" .block.spark) | nindent 4 }}
    - /opt/penstock/adaptor/stream_adaptor.py
  {{- else }}
  args: [{{ .component }}]
  {{- end }}
  env:
    {{- include "penstock.commonEnv" $root | nindent 4 }}
    {{- include "penstock.kafkaUserEnv" . | nindent 4 }}
    - name: PENSTOCK_HTTP_PORT
      value: {{ $port | quote }}
    {{- include (printf "penstock.env.%s" .component) $root | nindent 4 }}
    {{- if and (has .component (list "store" "query-engine")) (not (hasKey .block.settings "leave_s")) (not (hasKey $root.Values.settings "leave_s")) }}
    - name: PENSTOCK_LEAVE_S
      value: {{ include "penstock.leave" . | quote }}
    {{- end }}
    {{- range $name, $value := .block.settings }}
    - name: PENSTOCK_{{ $name | upper }}
      value: {{ $value | toString | quote }}
    {{- end }}
    {{- with .block.extraEnv }}{{ toYaml . | nindent 4 }}{{ end }}
  ports:
    - {name: {{ $http }}, containerPort: {{ $port }}}
    {{- if eq .component "dictionary" }}
    - {name: flight, containerPort: 7879}
    {{- else if eq .component "store" }}
    - {name: leases, containerPort: 7880}
    - {name: data, containerPort: 7881}
    {{- end }}
  {{- if not $root.Values.diagnosticMode }}
  startupProbe:
    httpGet: {path: /health/ready, port: {{ $http }}, scheme: {{ $scheme }}}
    {{- toYaml .block.startupProbe | nindent 4 }}
    timeoutSeconds: 4
  readinessProbe:
    httpGet: {path: /health/ready, port: {{ $http }}, scheme: {{ $scheme }}}
    periodSeconds: 5
    timeoutSeconds: 4
    failureThreshold: 2
  livenessProbe:
    httpGet: {path: /health/live, port: {{ $http }}, scheme: {{ $scheme }}}
    periodSeconds: 10
    timeoutSeconds: 4
    failureThreshold: 3
  {{- if has .component (list "coordinator" "query-engine") }}
  lifecycle:
    preStop: {exec: {command: [sleep, "2"]}}  # until Services no longer send requests here
  {{- end }}
  {{- end }}
  {{- $resources := deepCopy .block.resources -}}
  {{- if $rdma }}
  {{- range $kind := list "requests" "limits" -}}
  {{- $some := get $resources $kind | default dict -}}
  {{- if eq $root.Values.rdma.mode "devicePlugin" }}{{ $_ := set $some $root.Values.rdma.resourceName ($root.Values.rdma.count | toString) }}{{ end -}}
  {{- with $root.Values.rdma.hugepages }}{{ if .amount }}{{ $_ := set $some (printf "hugepages-%s" .size) .amount }}{{ end }}{{ end -}}
  {{- $_ := set $resources $kind $some -}}
  {{- end -}}
  {{- if eq $root.Values.rdma.mode "dra" }}{{ $_ := set $resources "claims" (list (dict "name" "rdma")) }}{{ end -}}
  {{- end }}
  resources: {{ toYaml $resources | nindent 4 }}
  securityContext: {{ include "penstock.containerSecurity" (dict "root" $root "lock" $rdma) | nindent 4 }}
  volumeMounts:
    - {name: tmp, mountPath: /tmp}
    {{- if include "penstock.dataVolume" . }}
    - name: data
      mountPath: /data
      {{- if and $root.Values.colocate (has .component (list "store" "query-engine")) }}
      subPath: {{ .component }}
      {{- end }}
    {{- end }}
    {{- if or (eq .component "store") (and (eq .component "query-engine") $root.Values.colocate) }}
    - {name: regions, mountPath: /dev/shm}
    {{- end }}
    {{- if has .component (list "store" "query-engine") }}
    - {name: secret, mountPath: /run/secrets/penstock, readOnly: true}
    {{- end }}
    {{- include "penstock.fileMounts" $root | nindent 4 }}
    {{- include "penstock.kafkaUserMount" . | nindent 4 }}
    {{- if and $rdma $root.Values.rdma.hugepages.amount }}
    - {name: hugepages, mountPath: /dev/hugepages}
    {{- end }}
    {{- if include "penstock.readsLoads" . }}
    - {name: shared, mountPath: /shared}
    {{- end }}
    {{- if and $spark (include "penstock.executorPods" .block.spark) }}
    - {name: executor, mountPath: /run/executor, readOnly: true}
    {{- end }}
    {{- with .block.extraVolumeMounts }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{/* "true" where a component reads the files of bulk loads */}}
{{- define "penstock.readsLoads" -}}
{{- if .root.Values.bulkLoad.claim -}}
{{- if has .component (list "coordinator" "store") -}}true
{{- else if and (eq .component "query-engine") (eq .root.Values.queryEngine.graph "engine") -}}true
{{- end -}}
{{- end -}}
{{- end }}

{{/* "true" where a component has /data */}}
{{- define "penstock.dataVolume" -}}
{{- if has .component (list "dictionary" "store" "query-engine") -}}true
{{- else if and (eq .component "adaptor") (eq .root.Values.adaptor.mode "spark") -}}true
{{- end -}}
{{- end }}

{{/* Environment of every service. */}}
{{- define "penstock.commonEnv" -}}
- name: PENSTOCK_INSTANCE
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: PENSTOCK_BOOTSTRAP_SERVERS
  value: {{ include "penstock.bootstrapServers" . | quote }}
- name: PENSTOCK_PREFIX
  value: {{ .Values.cluster.prefix | quote }}
- name: PENSTOCK_SHARDS
  value: {{ .Values.cluster.shards | quote }}
- name: PENSTOCK_BUCKETS
  value: {{ .Values.cluster.buckets | quote }}
- name: PENSTOCK_HTTP_HOST
  value: "0.0.0.0"
{{- if .Values.http.auth.enabled }}
- name: PENSTOCK_HTTP_TOKENS_FILE
  value: /run/secrets/tokens/tokens
{{- with .Values.http.auth.oidc }}
{{- if .issuer }}
- name: PENSTOCK_HTTP_OIDC_ISSUER
  value: {{ .issuer | quote }}
- name: PENSTOCK_HTTP_OIDC_AUDIENCE
  value: {{ .audience | quote }}
- name: PENSTOCK_HTTP_OIDC_ROLE_CLAIM
  value: {{ .roleClaim | quote }}
- name: PENSTOCK_HTTP_OIDC_ROLES
  {{- $roles := list }}
  {{- range $value, $role := .roles }}{{ $roles = append $roles (printf "%s=%s" $value $role) }}{{ end }}
  value: {{ join "," $roles | quote }}
- name: PENSTOCK_HTTP_OIDC_LEEWAY_S
  value: {{ .leewaySeconds | quote }}
{{- if .rate }}
- name: PENSTOCK_HTTP_OIDC_RATE
  value: {{ .rate | quote }}
{{- end }}
{{- if .maxBodyMb }}
- name: PENSTOCK_HTTP_OIDC_MAX_BODY_MB
  value: {{ .maxBodyMb | quote }}
{{- end }}
{{- if .jwksUrl }}
- name: PENSTOCK_HTTP_OIDC_JWKS
  value: {{ .jwksUrl | quote }}
{{- end }}
{{- if .caSecret.name }}
- name: PENSTOCK_HTTP_OIDC_CA
  value: /run/secrets/oidc-ca/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- else }}
- name: PENSTOCK_HTTP_INSECURE
  value: "true"
{{- end }}
{{- if include "penstock.tlsSecret" . }}
- name: PENSTOCK_HTTP_CERTIFICATE
  value: /run/secrets/tls/tls.crt
- name: PENSTOCK_HTTP_KEY
  value: /run/secrets/tls/tls.key
{{- end }}
- name: PENSTOCK_LOG_LEVEL
  value: {{ .Values.log.level }}
- name: PENSTOCK_LOG_FORMAT
  value: {{ .Values.log.format }}
{{- range $name, $value := .Values.kafka.properties }}
- name: PENSTOCK_KAFKA_{{ $name | upper | replace "." "_" }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- if .Values.kafka.caSecret.name }}
- name: PENSTOCK_KAFKA_SSL_CA_LOCATION
  value: /run/secrets/kafka-ca/ca.crt
{{- end }}
{{- if .Values.kafka.existingSecret }}
- name: PENSTOCK_SECRET_PROPERTIES_DIR
  value: /run/secrets/kafka
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: PENSTOCK_{{ $name | upper }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{- define "penstock.env.dictionaries" -}}
- name: PENSTOCK_DICTIONARIES
  value: {{ include "penstock.dictionaries" . | quote }}
{{- include "penstock.env.flightTls" . }}
{{- end }}

{{- define "penstock.env.flightTls" -}}
{{- if .Values.flight.tls.existingSecret }}
- name: PENSTOCK_TLS_CA
  value: /run/secrets/flight-tls/ca.crt
- name: PENSTOCK_TLS_CERTIFICATE
  value: /run/secrets/flight-tls/tls.crt
- name: PENSTOCK_TLS_KEY
  value: /run/secrets/flight-tls/tls.key
{{- end }}
{{- end }}

{{- define "penstock.env.address" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: PENSTOCK_ADVERTISED_HOST
  value: $(POD_NAME).{{ . }}
{{- end }}

{{- define "penstock.env.dictionary" -}}
- name: PENSTOCK_LISTEN
  value: 0.0.0.0:7879
{{- include "penstock.env.flightTls" . }}
{{- if not .Values.flight.tls.existingSecret }}
- name: PENSTOCK_FLIGHT_INSECURE
  value: "true"
{{- end }}
- name: PENSTOCK_DATA_DIR
  value: /data
{{- end }}

{{- define "penstock.env.adaptor" -}}
{{ include "penstock.env.dictionaries" . }}
{{- if eq .Values.adaptor.mode "spark" }}
{{- with .Values.adaptor.spark }}
- name: PENSTOCK_CHECKPOINT
  value: {{ .checkpoint | quote }}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- end }}
{{- end }}
{{- end }}

{{- define "penstock.env.dispatcher" -}}
{{- end }}

{{- define "penstock.env.coordinator" -}}
{{ include "penstock.env.dictionaries" . }}
- name: PENSTOCK_ADVERTISED_HOST  # where standby coordinators send requests while this one is active
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- end }}

{{- define "penstock.env.store" -}}
{{ include "penstock.env.dictionaries" . }}
{{ include "penstock.env.address" (printf "%s-store.%s.svc" (include "penstock.fullname" .) .Release.Namespace) }}
- name: PENSTOCK_SECRET_FILE
  value: /run/secrets/penstock/secret
- name: PENSTOCK_LISTEN
  value: 0.0.0.0:7880
- name: PENSTOCK_DATA_PORT
  value: "7881"
{{- if not .Values.flight.tls.existingSecret }}
- name: PENSTOCK_DATA_INSECURE
  value: "true"
{{- end }}
{{- include "penstock.env.rdmaUnencrypted" . }}
- name: PENSTOCK_DATA_DIR
  value: /data
{{- if .Values.rdma.enabled }}
- name: PENSTOCK_RDMA_DEVICE
  value: {{ .Values.rdma.device | quote }}
{{- if .Values.rdma.required }}
- name: PENSTOCK_RDMA_REQUIRED
  value: "true"
{{- end }}
{{- end }}
{{- end }}

{{- define "penstock.env.rdmaUnencrypted" -}}
{{- if and .Values.rdma.enabled .Values.rdma.unencrypted }}
- name: PENSTOCK_RDMA_UNENCRYPTED
  value: "true"
{{- end }}
{{- end }}

{{- define "penstock.env.query-engine" -}}
{{ include "penstock.env.dictionaries" . }}
{{ include "penstock.env.address" (printf "%s-%s.%s.svc" (include "penstock.fullname" .) (ternary "store" "query-engine" .Values.colocate) .Release.Namespace) }}
- name: PENSTOCK_SECRET_FILE
  value: /run/secrets/penstock/secret
- name: PENSTOCK_GRAPH
  value: {{ .Values.queryEngine.graph }}
- name: PENSTOCK_TRANSPORT
  value: {{ .Values.queryEngine.transport }}
{{- include "penstock.env.rdmaUnencrypted" . }}
- name: PENSTOCK_EXECUTION
  value: {{ .Values.queryEngine.execution }}
- name: PENSTOCK_DATA_DIR
  value: /data
{{- if and .Values.rdma.enabled .Values.rdma.device }}
- name: PENSTOCK_RDMA_DEVICE
  value: {{ .Values.rdma.device | quote }}
{{- end }}
{{- end }}
