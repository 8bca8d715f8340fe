{{/* The policy watcher on each cluster, beside the agent. `{{CLUSTER_NAME}}` is replaced by OCM. The pod's settings are the agent's.
     A second release on the same clusters has names of its own, and needs another policyWatcher.claim. */}}

{{- define "ds.watcher" -}}{{ include "ds.sampleName" (dict "root" . "name" "policy-watcher") }}{{- end -}}
{{- define "ds.watcherServiceAccount" -}}{{ include "ds.watcher" . }}-sa{{- end -}}

{{- define "ds.watcherSelector" -}}
app: {{ include "ds.watcher" . }}
{{- end -}}

{{- define "ds.watcherLabels" -}}
{{- $labels := include "ds.watcherSelector" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/component" "policy-watcher" -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" (include "ds.chart" .) -}}
{{- $_ := set $labels "app.kubernetes.io/version" (.Chart.AppVersion | replace "+" "_") -}}
{{- merge $labels (default dict .Values.commonLabels) | toYaml }}
{{- end -}}

{{- define "ds.watcherServiceAccountObject" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "ds.watcherServiceAccount" . }}
  namespace: {{ include "ds.agentNamespace" . }}
  labels:
    {{- include "ds.watcherLabels" . | nindent 4 }}
automountServiceAccountToken: false
{{- end -}}

{{/* An AddOnTemplate cannot hold a Role in a namespace that the cluster's name decides. On a managed cluster, Policies are in no
     other. */}}
{{- define "ds.watcherClusterRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "ds.watcher" . }}
  labels:
    {{- include "ds.watcherLabels" . | nindent 4 }}
rules:
  - apiGroups: [policy.open-cluster-management.io]
    resources: [policies]
    verbs: [list, watch]
  - apiGroups: [cluster.open-cluster-management.io]
    resources: [clusterclaims]
    resourceNames: [{{ .Values.policyWatcher.claim }}]
    verbs: [list, watch, patch]
  - apiGroups: [cluster.open-cluster-management.io]
    resources: [clusterclaims]
    verbs: [create]
{{- end -}}

{{- define "ds.watcherClusterRoleBinding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "ds.watcher" . }}
  labels:
    {{- include "ds.watcherLabels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ include "ds.watcher" . }}}
subjects:
  - {kind: ServiceAccount, name: {{ include "ds.watcherServiceAccount" . }}, namespace: {{ include "ds.agentNamespace" . }}}
{{- end -}}

{{/* Only made, then the watcher's; the add-on's removal removes it, so that it does not stay `compliant`. */}}
{{- define "ds.watcherClaim" -}}
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: ClusterClaim
metadata:
  name: {{ .Values.policyWatcher.claim }}
spec:
  value: empty
{{- end -}}

{{- define "ds.watcherDeployment" -}}
{{- $part := .Values.agent -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "ds.watcher" . }}
  namespace: {{ include "ds.agentNamespace" . }}
  labels:
    {{- include "ds.watcherLabels" . | nindent 4 }}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector:
    matchLabels:
      {{- include "ds.watcherSelector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "ds.watcherLabels" . | nindent 8 }}
    spec:
      serviceAccountName: {{ include "ds.watcherServiceAccount" . }}
      automountServiceAccountToken: true
      securityContext:
        {{- include "ds.podSecurityContext" (dict "root" . "part" $part) | nindent 8 }}
      {{- with include "ds.podPlacement" (dict "root" . "part" (merge (dict "replicas" 1) $part) "selector" (include "ds.watcherSelector" .)) | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      containers:
        - name: policy-watcher
          image: {{ include "ds.agentImage" . | quote }}
          imagePullPolicy: {{ default .Values.image.pullPolicy .Values.spokeSetting.agent.image.pullPolicy }}
          args:
            - policy-watcher
            - --namespace={{ "{{CLUSTER_NAME}}" }}
            - --claim={{ .Values.policyWatcher.claim }}
            - --stable-duration={{ .Values.policyWatcher.stableDuration }}
            - --web.listen-address=:8080
            - --health-probe-bind-address=:8081
            - --log.level={{ .Values.log.level }}
            - --log.format={{ .Values.log.format }}
            {{- range .Values.policyWatcher.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          ports:
            - {name: http-metrics, containerPort: 8080}
            - {name: health, containerPort: 8081}
          livenessProbe:
            httpGet: {path: /healthz, port: health}
            periodSeconds: 20
          readinessProbe:
            httpGet: {path: /readyz, port: health}
            periodSeconds: 10
          securityContext:
            {{- toYaml $part.securityContext | nindent 12 }}
          resources:
            {{- toYaml .Values.policyWatcher.resources | nindent 12 }}
{{- end -}}

{{/* It connects to the API server alone, to which the agent connects, too. */}}
{{- define "ds.watcherNetworkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "ds.watcher" . }}
  namespace: {{ include "ds.agentNamespace" . }}
  labels:
    {{- include "ds.watcherLabels" . | nindent 4 }}
spec:
  {{- $from := include "ds.networkPolicyFrom" (dict "root" . "from" .Values.agent.networkPolicy.from "tested" false) | fromYamlArray }}
  {{- include "ds.networkPolicySpec" (dict "part" .Values.agent "selector" (include "ds.watcherSelector" .)
      "ingress" (list (dict "from" $from "ports" (list 8080 8081)))) | nindent 2 }}
{{- end -}}

{{/* There is no Service. /metrics is neither encrypted nor secured, unless extraArgs say otherwise. */}}
{{- define "ds.watcherMonitor" -}}
{{- $monitor := .Values.policyWatcher.podMonitor -}}
{{- $open := dict "tls" (dict "secretName" "" "servingCert" false) "kubernetesAuth" (dict "enabled" false) "config" dict "configSecret" "" -}}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ include "ds.watcher" . }}
  namespace: {{ include "ds.agentNamespace" . }}
  labels:
    {{- merge (deepCopy $monitor.additionalLabels) (include "ds.watcherLabels" . | fromYaml) | toYaml | nindent 4 }}
spec:
  {{- include "ds.monitorSpec" (dict "part" (dict "web" $open) "service" "" "monitor" $monitor "endpoints" "podMetricsEndpoints"
      "namespace" (include "ds.agentNamespace" .) "selector" (include "ds.watcherSelector" .)) | nindent 2 }}
{{- end -}}
