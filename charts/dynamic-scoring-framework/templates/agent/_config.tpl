{{/* The agent's objects on each cluster: the manifests of its AddOnTemplate. OCM replaces {{CLUSTER_NAME}} in them. */}}

{{/* ds.agentMeta (dict "root" . "name" NAME) */}}
{{- define "ds.agentMeta" -}}
name: {{ .name }}
namespace: {{ include "ds.agentNamespace" .root }}
labels:
  {{- include "ds.agentLabels" .root | nindent 2 }}
{{- end -}}

{{/* The add-on's removal leaves the namespace, which also holds the users' Secrets and scoring APIs. */}}
{{- define "ds.agentNamespaceObject" -}}
apiVersion: v1
kind: Namespace
metadata:
  name: {{ include "ds.agentNamespace" . }}
  labels:
    addon.open-cluster-management.io/namespace: "true" # OCM copies its pull secret there
  annotations:
    addon.open-cluster-management.io/deletion-orphan: ""
{{- end -}}

{{- define "ds.agentServiceAccountObject" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (include "ds.agentServiceAccount" .)) | nindent 2 }}
  {{- with .Values.agent.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end -}}

{{- define "ds.agentRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (include "ds.agent" .)) | nindent 2 }}
rules:
  - apiGroups: [""]
    resources: [configmaps]
    resourceNames: [dynamic-scoring-config]
    verbs: [list, watch]
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [create]
  - apiGroups: [""]
    resources: [configmaps]
    resourceNames: [dynamic-scoring-status]
    verbs: [patch]
  - apiGroups: [""]
    resources: [secrets]
    {{- with .Values.agent.rbac.secretNames }}
    resourceNames: {{ toJson . }}
    {{- end }}
    verbs: [list, watch]
  {{- if gt (int .Values.agent.replicas) 1 }}
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [{{ include "ds.addon" . }}-agent]
    verbs: [get, update]
  {{- end }}
  {{- with .Values.agent.rbac.extraRules }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "ds.agentRoleBinding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (include "ds.agent" .)) | nindent 2 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ include "ds.agent" . }}}
subjects:
  - {kind: ServiceAccount, name: {{ include "ds.agentServiceAccount" . }}, namespace: {{ include "ds.agentNamespace" . }}}
{{- end -}}

{{/* OpenShift: the right to query its Prometheus, and a token for sourceEndpointAuthName. */}}
{{- define "ds.agentMonitoringView" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "ds.agent" . }}-monitoring-view
  labels:
    {{- include "ds.agentLabels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-monitoring-view}
subjects:
  - {kind: ServiceAccount, name: {{ include "ds.agentServiceAccount" . }}, namespace: {{ include "ds.agentNamespace" . }}}
{{- end -}}

{{- define "ds.agentToken" -}}
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (printf "%s-token" (include "ds.agent" .))) | nindent 2 }}
  annotations:
    kubernetes.io/service-account.name: {{ include "ds.agentServiceAccount" . }}
{{- end -}}

{{- define "ds.agentReviews" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "ds.agent" . }}-reviews
  labels:
    {{- include "ds.agentLabels" . | nindent 4 }}
rules:
  {{- include "ds.webReviews" . | nindent 2 }}
{{- end -}}

{{- define "ds.agentReviewsBinding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "ds.agent" . }}-reviews
  labels:
    {{- include "ds.agentLabels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ include "ds.agent" . }}-reviews}
subjects:
  - {kind: ServiceAccount, name: {{ include "ds.agentServiceAccount" . }}, namespace: {{ include "ds.agentNamespace" . }}}
{{- end -}}

{{/* The file of --config.file. */}}
{{- define "ds.agentYaml" -}}
{{ pick .Values.agent "limits" "remoteWrite" | toYaml }}
{{- end -}}

{{- define "ds.agentConfigMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (include "ds.agent" .)) | nindent 2 }}
data:
  agent.yaml: |
    {{- include "ds.agentYaml" . | nindent 4 }}
{{- end -}}

{{/* The file of --web.config.file. */}}
{{- define "ds.agentWebSecret" -}}
apiVersion: v1
kind: Secret
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (printf "%s-web" (include "ds.agent" .))) | nindent 2 }}
stringData:
  web.yaml: |
    {{- include "ds.webConfig" (dict "part" .Values.agent "service" (include "ds.agentServiceName" .)) | nindent 4 }}
{{- end -}}

{{- define "ds.agentClaim" -}}
{{- $storage := .Values.agent.storage -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (include "ds.agent" .)) | nindent 2 }}
spec:
  accessModes: {{ toJson $storage.accessModes }}
  {{- with $storage.storageClassName }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ $storage.size }}
{{- end -}}

{{- define "ds.agentService" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (include "ds.agentServiceName" .)) | nindent 2 }}
  {{- with include "ds.serviceAnnotations" (dict "part" .Values.agent "service" (include "ds.agentServiceName" .)) }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  selector:
    {{- include "ds.agentSelector" . | nindent 4 }}
  ports:
    - {name: http-metrics, port: {{ .Values.agent.service.port }}, targetPort: http-metrics}
    - {name: health, port: 8081, targetPort: health}
    {{- if .Values.agent.otlp.enabled }}
    - {name: otlp, port: 4318, targetPort: otlp}
    {{- end }}
{{- end -}}

{{/* ds.agentMonitor (dict "root" . "kind" KIND "monitor" VALUES "endpoints" FIELD) */}}
{{- define "ds.agentMonitor" -}}
{{- $root := .root -}}
apiVersion: monitoring.coreos.com/v1
kind: {{ .kind }}
metadata:
  name: {{ include "ds.agent" $root }}-monitor
  namespace: {{ include "ds.agentNamespace" $root }}
  labels:
    {{- merge (deepCopy .monitor.additionalLabels) (include "ds.agentLabels" $root | fromYaml) | toYaml | nindent 4 }}
spec:
  {{- include "ds.monitorSpec" (dict "part" $root.Values.agent "service" (include "ds.agentServiceName" $root) "monitor" .monitor
      "endpoints" .endpoints "namespace" (include "ds.agentNamespace" $root) "selector" (include "ds.agentSelector" $root)) | nindent 2 }}
{{- end -}}

{{/* OCM takes `{{` for the start of a variable's name. The AddOnDeploymentConfig has this one for those of alerts' texts. */}}
{{- define "ds.agentRules" -}}
apiVersion: {{ include "ds.ruleVersion" . }}
kind: {{ .Values.prometheusRule.kind }}
metadata:
  name: {{ include "ds.agent" . }}
  namespace: {{ include "ds.agentNamespace" . }}
  labels:
    {{- merge (deepCopy .Values.prometheusRule.additionalLabels) (include "ds.agentLabels" . | fromYaml) | toYaml | nindent 4 }}
spec:
  {{- $name := ternary "@CLUSTER_NAME@" "" .Values.prometheusRule.labelClusters }}
  {{- include "ds.ruleGroups" (dict "root" . "files" .Values.prometheusRule.clusters "cluster" $name) | replace "{{" "{{OPENING_BRACES}}" |
      replace "@CLUSTER_NAME@" "{{CLUSTER_NAME}}" | nindent 2 }}
{{- end -}}

{{/* Kinds of objects that OCM's work agent has no right to, unless a ClusterRole with a certain label grants it. */}}
{{- define "ds.agentWorkKinds" -}}
{{- if .Values.policyWatcher.enabled }}
- {apiGroups: [cluster.open-cluster-management.io], resources: [clusterclaims], verbs: [get, list, watch, create, update, patch, delete]}
{{- end }}
{{- if or .Values.agent.podMonitor.enabled (and .Values.policyWatcher.enabled .Values.policyWatcher.podMonitor.enabled) }}
- {apiGroups: [monitoring.coreos.com], resources: [podmonitors], verbs: [get, list, watch, create, update, patch, delete]}
{{- end }}
{{- if include "ds.rulesOnClusters" . }}
- {apiGroups: [{{ include "ds.ruleVersion" . | dir }}], resources: [{{ lower .Values.prometheusRule.kind }}s], verbs: [get, list, watch, create, update, patch, delete]}
{{- end }}
{{- end -}}

{{/* The add-on's removal leaves it: without it, the work agent could not find out that those objects are gone. */}}
{{- define "ds.agentWorkRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "ds.agent" . }}-work
  labels:
    open-cluster-management.io/aggregate-to-work: "true"
    {{- include "ds.agentLabels" . | nindent 4 }}
  annotations:
    addon.open-cluster-management.io/deletion-orphan: ""
rules:
  {{- include "ds.agentWorkKinds" . | trim | nindent 2 }}
{{- end -}}

{{- define "ds.agentPodDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (include "ds.agent" .)) | nindent 2 }}
spec:
  maxUnavailable: {{ .Values.agent.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "ds.agentSelector" . | nindent 6 }}
{{- end -}}

{{- define "ds.agentNetworkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (include "ds.agent" .)) | nindent 2 }}
spec:
  {{- $policy := .Values.agent.networkPolicy }}
  {{- $from := include "ds.networkPolicyFrom" (dict "root" . "from" $policy.from "tested" true) | fromYamlArray }}
  {{- $ingress := list (dict "from" $from "ports" (list 8080 8081)) }}
  {{- if .Values.agent.otlp.enabled }}
  {{- $senders := include "ds.networkPolicyFrom" (dict "root" . "from" $policy.otlpFrom "tested" false) | fromYamlArray }}
  {{- $ingress = append $ingress (dict "from" $senders "ports" (list 4318)) }}
  {{- end }}
  {{- include "ds.networkPolicySpec" (dict "part" .Values.agent "selector" (include "ds.agentSelector" .) "ingress" $ingress) | nindent 2 }}
{{- end -}}
