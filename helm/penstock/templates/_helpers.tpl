{{/* Names, labels, images. */}}

{{- define "penstock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "penstock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "penstock.name" . -}}
{{- (contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name)) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "penstock.selectorLabels" -}}
app.kubernetes.io/name: {{ include "penstock.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "penstock.labels" -}}
{{ include "penstock.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{/* image: (dict "root" $ "image" .Values.image "default" "tag") */}}
{{- define "penstock.image" -}}
{{- $i := .image -}}
{{- $name := $i.registry | empty | ternary $i.repository (printf "%s/%s" $i.registry $i.repository) -}}
{{- if $i.digest -}}{{ $name }}@{{ $i.digest }}{{- else -}}{{ $name }}:{{ $i.tag | default .root.Chart.AppVersion }}{{- end -}}
{{- end }}

{{- define "penstock.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "penstock.serviceAccountName" -}}
{{- .root.Values.serviceAccount.create | ternary (printf "%s-%s" (include "penstock.fullname" .root) .component) "default" -}}
{{- end }}

{{- define "penstock.secretName" -}}
{{- .Values.secret.existingSecret | default (printf "%s-secret" (include "penstock.fullname" .)) -}}
{{- end }}

{{/*
The secret of stores and query engines in base64: that of the Secret in the cluster, else a new one. A new one is kept in
the values, so that the Secret and the pods' annotation get the same. Empty if an existing Secret cannot be read.
*/}}
{{- define "penstock.secretData" -}}
{{- if not (hasKey .Values.secret "made") -}}
{{- $data := (lookup "v1" "Secret" .Release.Namespace (include "penstock.secretName" .)).data | default dict -}}
{{- $new := empty .Values.secret.existingSecret | ternary (randAlphaNum 48 | b64enc) "" -}}
{{- $_ := set .Values.secret "made" (get $data .Values.secret.key | default $new) -}}
{{- end -}}
{{- .Values.secret.made -}}
{{- end }}

{{- define "penstock.tokensSecret" -}}
{{- .Values.http.auth.existingSecret | default (printf "%s-tokens" (include "penstock.fullname" .)) -}}
{{- end }}

{{/* Name of the Secret of HTTPS; empty = HTTP */}}
{{- define "penstock.tlsSecret" -}}
{{- .Values.http.tls.existingSecret | default (.Values.http.tls.certManager.enabled | ternary (printf "%s-tls" (include "penstock.fullname" .)) "") -}}
{{- end }}

{{- define "penstock.scheme" -}}
{{- include "penstock.tlsSecret" . | empty | ternary "http" "https" -}}
{{- end }}

{{/* Volumes and mounts of the files that every service, and the test, reads. */}}
{{- define "penstock.fileVolumes" -}}
{{- if .Values.http.auth.enabled }}
- name: tokens
  secret: {secretName: {{ include "penstock.tokensSecret" . }}, defaultMode: 0440, items: [{key: {{ .Values.http.auth.key }}, path: tokens}]}
{{- with .Values.http.auth.oidc.caSecret }}
{{- if .name }}
- name: oidc-ca
  secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}
{{- end }}
{{- end }}
{{- with include "penstock.tlsSecret" . }}
- name: tls
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- with .Values.flight.tls.existingSecret }}
- name: flight-tls
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- with .Values.kafka.existingSecret }}
- name: kafka
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- with .Values.kafka.caSecret }}
{{- if .name }}
- name: kafka-ca
  secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}
{{- end }}
{{- end }}

{{- define "penstock.fileMounts" -}}
{{- if .Values.http.auth.enabled }}
- {name: tokens, mountPath: /run/secrets/tokens, readOnly: true}
{{- if .Values.http.auth.oidc.caSecret.name }}
- {name: oidc-ca, mountPath: /run/secrets/oidc-ca, readOnly: true}
{{- end }}
{{- end }}
{{- if include "penstock.tlsSecret" . }}
- {name: tls, mountPath: /run/secrets/tls, readOnly: true}
{{- end }}
{{- if .Values.flight.tls.existingSecret }}
- {name: flight-tls, mountPath: /run/secrets/flight-tls, readOnly: true}
{{- end }}
{{- if .Values.kafka.existingSecret }}
- {name: kafka, mountPath: /run/secrets/kafka, readOnly: true}
{{- end }}
{{- if .Values.kafka.caSecret.name }}
- {name: kafka-ca, mountPath: /run/secrets/kafka-ca, readOnly: true}
{{- end }}
{{- end }}

{{/*
The Kafka user of a component, which the Strimzi operator makes: (dict "root" $ "component" "store"). The operator keeps
its credentials in a Secret of the user's name.
*/}}
{{- define "penstock.kafkaUser" -}}
{{ include "penstock.fullname" .root }}-{{ .component }}
{{- end }}

{{/* Name of the ACLs in acls.yaml */}}
{{- define "penstock.kafkaRole" -}}
{{- if and (eq .component "adaptor") (eq .root.Values.adaptor.mode "spark") -}}spark-adaptor{{- else -}}{{ .component }}{{- end -}}
{{- end }}

{{/* "true" where the chart makes users of Strimzi */}}
{{- define "penstock.kafkaUsers" -}}
{{- if and .Values.kafka.strimzi.enabled .Values.kafka.strimzi.user.create -}}true{{- end -}}
{{- end }}

{{- define "penstock.kafkaUserVolume" -}}
{{- if include "penstock.kafkaUsers" .root }}
- name: kafka-user-{{ .component }}
  secret:
    secretName: {{ include "penstock.kafkaUser" . }}
    defaultMode: 0440
    {{- if eq .root.Values.kafka.strimzi.user.authentication "tls" }}
    items: [{key: user.crt, path: user.crt}, {key: user.key, path: user.key}]
    {{- else }}
    items: [{key: password, path: sasl.password}]
    {{- end }}
{{- end }}
{{- end }}

{{- define "penstock.kafkaUserMount" -}}
{{- if include "penstock.kafkaUsers" .root }}
- {name: kafka-user-{{ .component }}, mountPath: /run/secrets/kafka, readOnly: true}
{{- end }}
{{- end }}

{{- define "penstock.kafkaUserEnv" -}}
{{- if include "penstock.kafkaUsers" .root }}
{{- if eq .root.Values.kafka.strimzi.user.authentication "tls" }}
- name: PENSTOCK_KAFKA_SSL_CERTIFICATE_LOCATION
  value: /run/secrets/kafka/user.crt
- name: PENSTOCK_KAFKA_SSL_KEY_LOCATION
  value: /run/secrets/kafka/user.key
{{- else }}
- name: PENSTOCK_KAFKA_SASL_USERNAME
  value: {{ include "penstock.kafkaUser" . }}
- name: PENSTOCK_SECRET_PROPERTIES_DIR
  value: /run/secrets/kafka
{{- end }}
{{- end }}
{{- end }}

{{/* Addresses. */}}

{{- define "penstock.bootstrapServers" -}}
{{- if .Values.kafka.embedded.enabled -}}{{ include "penstock.fullname" . }}-kafka:9092{{- else -}}{{ .Values.kafka.bootstrapServers }}{{- end -}}
{{- end }}

{{- define "penstock.dictionaries" -}}
{{- $full := include "penstock.fullname" . -}}
{{- $scheme := "grpc" -}}
{{- $domain := "" -}}
{{- if .Values.flight.tls.existingSecret -}}
{{- $scheme = "grpc+tls" -}}
{{- $domain = printf ".%s.svc" .Release.Namespace -}}{{/* gRPC accepts no wildcard of two labels */}}
{{- end -}}
{{- $list := list -}}
{{- range $i := until (int .Values.dictionary.replicas) -}}
{{- $list = append $list (printf "%s://%s-dictionary-%d.%s-dictionary%s:7879" $scheme $full $i $full $domain) -}}
{{- end -}}
{{- join "," $list -}}
{{- end }}

{{/* A peer of a NetworkPolicy: (dict "root" $ "component" "store") */}}

{{- define "penstock.peer" -}}
podSelector:
  matchLabels:
    {{- include "penstock.selectorLabels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
{{- end }}
