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

{{/* ds.networkPolicySpec also takes "selector" and "ports", those that are served. */}}
{{- define "ds.networkPolicySpec" -}}
podSelector:
  matchLabels:
    {{- .selector | nindent 4 }}
policyTypes: [Ingress, Egress]
ingress:
  - from:
      {{- default (list (dict "namespaceSelector" dict)) .part.networkPolicy.from | toYaml | nindent 6 }}
    ports:
      {{- range .ports }}
      - {protocol: TCP, port: {{ . }}}
      {{- end }}
egress:
  - ports: # DNS; 5353 is OpenShift's
      - {protocol: UDP, port: 53}
      - {protocol: TCP, port: 53}
      - {protocol: UDP, port: 5353}
      - {protocol: TCP, port: 5353}
  {{- with .part.networkPolicy.egressPorts }}
  - ports:
      {{- range . }}
      - {protocol: TCP, port: {{ . }}}
      {{- end }}
  {{- end }}
  {{- with .part.networkPolicy.extraEgress }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
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
