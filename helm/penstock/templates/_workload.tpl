{{/* Parts that every component has: (dict "root" $ "component" "store" "block" .Values.store) */}}

{{- define "penstock.meta" -}}
name: {{ include "penstock.fullname" .root }}-{{ .component }}
labels:
  {{- include "penstock.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "penstock.selector" -}}
matchLabels:
  {{- include "penstock.selectorLabels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "penstock.serviceAccount" -}}
{{- if .root.Values.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "penstock.meta" . | nindent 2 }}
  {{- with .root.Values.serviceAccount.annotations }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- end }}

{{- define "penstock.pdb" -}}
{{- if .block.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "penstock.meta" . | nindent 2 }}
spec:
  maxUnavailable: {{ .block.podDisruptionBudget.maxUnavailable }}
  selector:
    {{- include "penstock.selector" . | nindent 4 }}
{{- end }}
{{- end }}

{{/* The service by which a StatefulSet's pods have names of their own. */}}
{{- define "penstock.headless" -}}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "penstock.meta" . | nindent 2 }}
  {{- with .annotations }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true  # a service that starts is asked before it is ready
  selector:
    {{- include "penstock.selectorLabels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  ports:
    {{- range $name, $port := .ports }}
    - {name: {{ $name }}, port: {{ $port }}, targetPort: {{ $name }}}
    {{- end }}
{{- end }}

{{/* The volume at /data of a StatefulSet. Gives the volume where there is no claim of the pod. */}}
{{- define "penstock.dataSource" -}}
{{- if not .persistence.enabled }}
- name: data
  emptyDir: {}
{{- else if .persistence.existingClaim }}
- name: data
  persistentVolumeClaim: {claimName: {{ .persistence.existingClaim }}}
{{- end }}
{{- end }}

{{- define "penstock.claims" -}}
{{- $p := .persistence }}
{{- if and $p.enabled (not $p.existingClaim) }}
persistentVolumeClaimRetentionPolicy: {whenDeleted: {{ $p.whenDeleted }}, whenScaled: {{ $p.whenScaled }}}
volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: {{ toJson $p.accessModes }}
      {{- with $p.storageClassName }}
      storageClassName: {{ . }}
      {{- end }}
      resources: {requests: {storage: {{ $p.size }}}}
{{- end }}
{{- end }}

{{- define "penstock.statefulSet" -}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "penstock.meta" . | nindent 2 }}
spec:
  {{- if not (and .block.autoscaling .block.autoscaling.enabled) }}
  replicas: {{ .block.replicas }}
  {{- end }}
  serviceName: {{ include "penstock.fullname" .root }}-{{ .component }}
  podManagementPolicy: Parallel
  updateStrategy: {type: RollingUpdate}
  selector:
    {{- include "penstock.selector" . | nindent 4 }}
  template:
    {{- include "penstock.podTemplate" (merge (dict "volumes" (include "penstock.dataSource" .block)) .) | nindent 4 }}
  {{- include "penstock.claims" .block | nindent 2 }}
{{- end }}

{{- define "penstock.deployment" -}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "penstock.meta" . | nindent 2 }}
spec:
  {{- if not (and .block.autoscaling .block.autoscaling.enabled) }}
  replicas: {{ .block.replicas }}
  {{- end }}
  strategy: {{ .strategy | default "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}" }}
  selector:
    {{- include "penstock.selector" . | nindent 4 }}
  template:
    {{- include "penstock.podTemplate" . | nindent 4 }}
{{- end }}

{{/* HPA by CPU, or KEDA by lag. */}}
{{- define "penstock.autoscaling" -}}
{{- $a := .block.autoscaling -}}
{{- if $a.enabled }}
---
{{- if eq $a.kind "keda" }}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "penstock.meta" . | nindent 2 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: {{ .kind }}, name: {{ include "penstock.fullname" .root }}-{{ .component }}}
  minReplicaCount: {{ $a.minReplicas }}
  maxReplicaCount: {{ $a.maxReplicas }}
  triggers:
    - type: prometheus
      metadata:
        serverAddress: {{ $a.prometheus | quote }}
        query: sum(penstock_lag_records{namespace="{{ .root.Release.Namespace }}",pod=~"{{ include "penstock.fullname" .root }}-{{ .component }}-.*"})
        threshold: {{ $a.lagRecords | quote }}
{{- else }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "penstock.meta" . | nindent 2 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: {{ .kind }}, name: {{ include "penstock.fullname" .root }}-{{ .component }}}
  minReplicas: {{ $a.minReplicas }}
  maxReplicas: {{ $a.maxReplicas }}
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: {{ $a.targetCPU }}}}
  behavior:
    scaleDown: {stabilizationWindowSeconds: 300, policies: [{type: Pods, value: 1, periodSeconds: 120}]}
{{- end }}
{{- end }}
{{- end }}
