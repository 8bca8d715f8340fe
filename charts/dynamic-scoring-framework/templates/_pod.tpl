{{/* What the pods of all parts have in common. Each takes (dict "root" . "part" VALUES ...), where VALUES is .Values.controller or
     .Values.agent. */}}

{{/* ds.podSecurityContext: without what an SCC sets, on OpenShift. */}}
{{- define "ds.podSecurityContext" -}}
{{- $context := deepCopy (default dict .part.podSecurityContext) -}}
{{- if eq (include "ds.openshift" .root) "true" -}}
{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" "seLinuxOptions" -}}
{{- end -}}
{{- toYaml $context }}
{{- end -}}

{{/* ds.podPlacement also takes "selector", the labels of the part's pods. */}}
{{- define "ds.podPlacement" -}}
{{- with include "ds.imagePullSecrets" .root }}
imagePullSecrets:
  {{- . | trim | nindent 2 }}
{{- end }}
{{- with .part.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if kindIs "bool" .part.hostUsers }}
hostUsers: {{ .part.hostUsers }}
{{- end }}
{{- with .part.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .part.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if gt (int .part.replicas) 1 }}
{{- with .part.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - {{ merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" ($.selector | fromYaml))) | toYaml | nindent 4 | trim }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* ds.containerRest: security context, probes, resources. */}}
{{- define "ds.containerRest" -}}
securityContext:
  {{- toYaml .part.securityContext | nindent 2 }}
{{- with .part.livenessProbe }}
livenessProbe:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.readinessProbe }}
readinessProbe:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.lifecycle }}
lifecycle:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* ds.networkPolicySpec takes "part", "selector" and "ingress", a list of {ports, from}; without `from`, from everywhere: a peer that
     selects namespaces is a pod of them, never a client outside of the cluster, nor a pod on its node's network. Both policyTypes
     and both rules are explicit, so that a policy for all pods of the namespace, such as one that denies everything, takes nothing
     away: policies add up. The kubelet's probes are always allowed. */}}
{{- define "ds.networkPolicySpec" -}}
podSelector:
  matchLabels:
    {{- .selector | nindent 4 }}
policyTypes: [Ingress, Egress]
ingress:
  {{- range .ingress }}
  - {{ with .from }}from:
      {{- toYaml . | nindent 6 }}
    {{ end }}ports:
      {{- range .ports }}
      - {protocol: TCP, port: {{ . }}}
      {{- end }}
  {{- end }}
{{- if .part.networkPolicy.egressPorts }}
egress:
  {{- include "ds.networkPolicyDNS" . | nindent 2 }}
  - ports:
      {{- range .part.networkPolicy.egressPorts }}
      - {protocol: TCP, port: {{ . }}}
      {{- end }}
  {{- with .part.networkPolicy.extraEgress }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- else }}
egress: [{}] # everything
{{- end }}
{{- end -}}

{{- define "ds.networkPolicyDNS" -}}
- ports: # DNS; 5353 is OpenShift's
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
    - {protocol: UDP, port: 5353}
    - {protocol: TCP, port: 5353}
{{- end -}}

{{/* ds.networkPolicyFrom (dict "root" . "from" PEERS "tested" BOOL): the peers, by default pods of all namespaces, and the pod of
     `helm test`. */}}
{{- define "ds.networkPolicyFrom" -}}
{{- $from := default (list (dict "namespaceSelector" dict)) .from -}}
{{- if and .from .tested -}}
{{- $namespace := dict "matchLabels" (dict "kubernetes.io/metadata.name" (include "ds.namespace" .root)) -}}
{{- $pod := dict "matchLabels" (include "ds.selector" (dict "root" .root "component" "test") | fromYaml) -}}
{{- $from = append $from (dict "namespaceSelector" $namespace "podSelector" $pod) -}}
{{- end -}}
{{- toYaml $from -}}
{{- end -}}

{{/* ds.monitorSpec takes "part", "service", "monitor", "endpoints" (the field's name), "namespace" and "selector". honorLabels stays
     false. */}}
{{- define "ds.monitorSpec" -}}
{{- with .monitor.spec }}
{{- toYaml . }}
{{ end -}}
namespaceSelector:
  matchNames: [{{ .namespace }}]
selector:
  matchLabels:
    {{- .selector | nindent 4 }}
{{ .endpoints }}:
  - {{ merge (dict "port" "http-metrics") (include "ds.webEndpoint" (merge (dict "endpoint" .monitor.endpoint) .) | fromYaml) | toYaml | nindent 4 | trim }}
{{- end -}}
