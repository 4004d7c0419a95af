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

{{/* Addresses. */}}

{{- define "penstock.bootstrapServers" -}}
{{- if .Values.kafka.embedded.enabled -}}{{ include "penstock.fullname" . }}-kafka:9092{{- else -}}{{ .Values.kafka.bootstrapServers }}{{- end -}}
{{- end }}

{{- define "penstock.dictionaries" -}}
{{- $full := include "penstock.fullname" . -}}
{{- $list := list -}}
{{- range $i := until (int .Values.dictionary.replicas) -}}
{{- $list = append $list (printf "grpc://%s-dictionary-%d.%s-dictionary:7879" $full $i $full) -}}
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
