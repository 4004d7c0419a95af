{{/*
The pod template of a component.
(dict "root" $ "component" "store" "block" .Values.store "containers" (list "store") "volumes" "<yaml>")
Each container comes from "penstock.container.<name>".
*/}}

{{- define "penstock.podTemplate" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "penstock.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with .block.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    penstock/config: {{ include "penstock.filesRead" . | sha256sum | trunc 16 }}  # pods restart if a file changes
    {{- if and $root.Values.rdma.enabled $root.Values.rdma.networks (has .component (list "store" "query-engine")) }}
    k8s.v1.cni.cncf.io/networks: {{ $root.Values.rdma.networks | quote }}
    {{- end }}
    {{- with .block.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "penstock.serviceAccountName" . }}
  automountServiceAccountToken: {{ .token | default false }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .block.terminationGracePeriodSeconds }}
  {{- include "penstock.pullSecrets" $root | nindent 2 }}
  securityContext:
    {{- include "penstock.podSecurity" $root | nindent 4 }}
  {{- include "penstock.scheduling" .block | nindent 2 }}
  containers:
    {{- range .containers }}
    {{- include "penstock.container" (dict "root" $root "component" . "block" (index $root.Values (include "penstock.valuesKey" .))) | nindent 4 }}
    {{- end }}
  {{- if include "penstock.rdmaClaim" . }}
  resourceClaims:
    - name: rdma
      resourceClaimTemplateName: {{ $root.Values.rdma.claimTemplate }}
  {{- end }}
  volumes:
    - name: tmp
      emptyDir: {sizeLimit: 1Gi}
    {{- with .volumes }}{{ . | nindent 4 }}{{ end }}
    {{- if has "store" .containers }}
    - name: regions
      emptyDir: {medium: Memory, sizeLimit: {{ $root.Values.store.sharedMemory }}}
    {{- end }}
    {{- if or (has "store" .containers) (has "query-engine" .containers) }}
    - name: secret
      secret:
        secretName: {{ include "penstock.secretName" $root }}
        defaultMode: 0440
        items: [{key: {{ $root.Values.secret.key }}, path: secret}]
    {{- end }}
    {{- include "penstock.fileVolumes" $root | nindent 4 }}
    {{- range .containers }}
    {{- include "penstock.kafkaUserVolume" (dict "root" $root "component" .) | nindent 4 }}
    {{- end }}
    {{- if and $root.Values.rdma.enabled $root.Values.rdma.hugepages.amount (has .component (list "store" "query-engine")) }}
    - name: hugepages
      emptyDir: {medium: HugePages-{{ $root.Values.rdma.hugepages.size }}}
    {{- end }}
    {{- $reads := false }}
    {{- range .containers }}{{ if include "penstock.readsLoads" (dict "root" $root "component" .) }}{{ $reads = true }}{{ end }}{{ end }}
    {{- if $reads }}
    - name: shared
      persistentVolumeClaim: {claimName: {{ $root.Values.bulkLoad.claim }}}
    {{- end }}
    {{- with .block.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{/*
Contents of the Secrets that a component reads only when it starts. Tokens and certificates of HTTP are not among them:
services read them again. Without a cluster (`helm template`), the contents of existing Secrets are unknown.
*/}}
{{- define "penstock.filesRead" -}}
{{- $root := .root -}}
{{- range list $root.Values.kafka.existingSecret $root.Values.kafka.caSecret.name -}}
{{- if . }}{{ . }} {{ toJson ((lookup "v1" "Secret" $root.Release.Namespace .).data) }} {{ end -}}
{{- end -}}
{{- if include "penstock.kafkaUsers" $root -}}
{{- range .containers -}}
{{- $name := include "penstock.kafkaUser" (dict "root" $root "component" .) -}}
{{ $name }} {{ toJson ((lookup "v1" "Secret" $root.Release.Namespace $name).data) }} {{ end -}}
{{- end -}}
{{- if or (has "store" .containers) (has "query-engine" .containers) -}}
{{- $root.Values.secret.key }} {{ include "penstock.secretData" $root }}
{{- end -}}
{{- end }}

{{- define "penstock.podSecurity" -}}
{{- $base := dict "runAsNonRoot" true "runAsUser" 10001 "runAsGroup" 10001 "fsGroup" 10001 "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- toYaml (mergeOverwrite $base .Values.podSecurityContext) -}}
{{- end }}

{{/* (dict "root" $ "lock" bool): IPC_LOCK only where memory is registered for RDMA */}}
{{- define "penstock.containerSecurity" -}}
{{- $caps := dict "drop" (list "ALL") -}}
{{- if .lock }}{{ $_ := set $caps "add" (list "IPC_LOCK") }}{{ end -}}
{{- $base := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" $caps -}}
{{- toYaml (mergeOverwrite $base .root.Values.containerSecurityContext) -}}
{{- end }}

{{- define "penstock.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "penstock.valuesKey" -}}
{{- eq . "query-engine" | ternary "queryEngine" . -}}
{{- end }}

{{/* "true" where the pod has a claim of DRA */}}
{{- define "penstock.rdmaClaim" -}}
{{- if and .root.Values.rdma.enabled (eq .root.Values.rdma.mode "dra") (has .component (list "store" "query-engine")) -}}true{{- end -}}
{{- end }}
