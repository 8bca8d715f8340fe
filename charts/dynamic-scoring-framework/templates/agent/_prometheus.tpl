{{/* A Prometheus on each cluster that receives OpenTelemetry metrics, for queries that the agent itself does not answer. It keeps them
     for a few hours, in a volume that goes with its pod. The pod's placement and security are the agent's. */}}

{{- define "ds.prometheus" -}}{{ printf "%s-prometheus" (include "ds.agent" .) | trunc 63 | trimSuffix "-" }}{{- end -}}
{{- define "ds.prometheusURL" -}}
http://{{ include "ds.prometheus" . }}.{{ include "ds.agentNamespace" . }}.svc:9090/api/v1/query_range
{{- end -}}

{{- define "ds.prometheusSelector" -}}
app: {{ include "ds.prometheus" . }}
{{- end -}}

{{- define "ds.prometheusLabels" -}}
{{- $own := dict "app" (include "ds.prometheus" .) "app.kubernetes.io/component" "prometheus" -}}
{{- merge $own (include "ds.agentLabels" . | fromYaml) | toYaml }}
{{- end -}}

{{- define "ds.prometheusMeta" -}}
name: {{ include "ds.prometheus" . }}
namespace: {{ include "ds.agentNamespace" . }}
labels:
  {{- include "ds.prometheusLabels" . | nindent 2 }}
{{- end -}}

{{- define "ds.prometheusServiceAccountObject" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "ds.prometheusMeta" . | nindent 2 }}
automountServiceAccountToken: false
{{- end -}}

{{- define "ds.prometheusYaml" -}}
{{- $otlp := .Values.agent.otlp -}}
{{- $k8s := list "k8s.node.name" "k8s.namespace.name" "k8s.pod.name" "k8s.container.name" -}}
otlp:
  promote_resource_attributes: {{ concat ($otlp.k8sLabels | ternary $k8s list) $otlp.promoteResourceAttributes | uniq | toJson }}
  translation_strategy: UnderscoreEscapingWithSuffixes
storage:
  tsdb:
    out_of_order_time_window: {{ $otlp.prometheus.outOfOrderTimeWindow }}
{{- end -}}

{{- define "ds.prometheusConfigMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "ds.prometheusMeta" . | nindent 2 }}
data:
  prometheus.yml: |
    {{- include "ds.prometheusYaml" . | nindent 4 }}
{{- end -}}

{{- define "ds.prometheusDeployment" -}}
{{- $part := .Values.agent -}}
{{- $prometheus := $part.otlp.prometheus -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "ds.prometheusMeta" . | nindent 2 }}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector:
    matchLabels:
      {{- include "ds.prometheusSelector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "ds.prometheusLabels" . | nindent 8 }}
      annotations:
        checksum/config: {{ include "ds.prometheusYaml" . | sha256sum }}
    spec:
      serviceAccountName: {{ include "ds.prometheus" . }}
      automountServiceAccountToken: false
      securityContext:
        {{- include "ds.podSecurityContext" (dict "root" . "part" $part) | nindent 8 }}
      {{- with include "ds.podPlacement" (dict "root" . "part" (merge (dict "replicas" 1) $part) "selector" (include "ds.prometheusSelector" .)) | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      containers:
        - name: prometheus
          image: {{ $prometheus.image | quote }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          args:
            - --config.file=/etc/prometheus/prometheus.yml
            - --storage.tsdb.path=/prometheus
            - --storage.tsdb.retention.time={{ $prometheus.retention.time }}
            - --storage.tsdb.retention.size={{ $prometheus.retention.size }}
            - --web.listen-address=:9090
            - --web.enable-otlp-receiver
            - --log.level={{ .Values.log.level }}
            {{- range $prometheus.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          ports:
            - {name: http, containerPort: 9090}
          livenessProbe:
            httpGet: {path: /-/healthy, port: http}
            periodSeconds: 20
          readinessProbe:
            httpGet: {path: /-/ready, port: http}
            periodSeconds: 10
          securityContext:
            {{- toYaml $part.securityContext | nindent 12 }}
          resources:
            {{- toYaml $prometheus.resources | nindent 12 }}
          volumeMounts:
            - {name: config, mountPath: /etc/prometheus, readOnly: true}
            - {name: storage, mountPath: /prometheus}
      volumes:
        - name: config
          configMap: {name: {{ include "ds.prometheus" . }}}
        - name: storage
          emptyDir: {sizeLimit: {{ $prometheus.size }}}
{{- end -}}

{{- define "ds.prometheusService" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "ds.prometheusMeta" . | nindent 2 }}
spec:
  selector:
    {{- include "ds.prometheusSelector" . | nindent 4 }}
  ports:
    - {name: http, port: 9090, targetPort: http}
{{- end -}}

{{/* It connects to nothing. */}}
{{- define "ds.prometheusNetworkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "ds.prometheusMeta" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "ds.prometheusSelector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - from:
        {{- .Values.agent.otlp.prometheus.from | toYaml | nindent 8 }}
      ports:
        - {protocol: TCP, port: 9090}
  egress: []
{{- end -}}
