{{/* Environment, kubeconfig and proxy are added by OCM: HUB_KUBECONFIG, CLUSTER_NAME, INSTALL_NAMESPACE, /managed/hub-kubeconfig. */}}
{{- define "ds.agentArgs" -}}
{{- $web := dict "part" .Values.agent "service" (include "ds.agentServiceName" .) -}}
- agent
- --addon-name={{ include "ds.addon" . }}
{{- if .Values.agent.adoptUnownedScores }}
- --adopt-unowned-scores
{{- end }}
{{- if gt (int .Values.agent.replicas) 1 }}
- --leader-elect
{{- end }}
- --config.file=/etc/dynamic-scoring/agent.yaml
- --storage.path=/var/lib/dynamic-scoring
- --web.listen-address=:8080
- --health-probe-bind-address=:8081
- --log.level={{ .Values.log.level }}
- --log.format={{ .Values.log.format }}
{{- with .Values.agent.otlp }}
{{- if .enabled }}
- --otlp.listen-address=:4318
{{- if not .k8sLabels }}
- --otlp.k8s-labels=false
{{- end }}
{{- with .promoteResourceAttributes }}
- --otlp.promote-resource-attributes={{ join "," . }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.agent.otlp.prometheus.enabled }}
- --otlp.query-url={{ include "ds.prometheusURL" . }}
{{- end }}
{{- include "ds.webArgs" $web }}
{{- range .Values.agent.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "ds.agentEnv" -}}
{{- if eq (include "ds.serviceCA" .) "true" }}
- {name: SSL_CERT_FILE, value: /var/run/secrets/openshift/service-ca/service-ca.crt}
- {name: SSL_CERT_DIR, value: /etc/ssl/certs}
{{- end }}
{{- with .Values.agent.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ds.agentMounts" -}}
- {name: config, mountPath: /etc/dynamic-scoring/agent.yaml, subPath: agent.yaml, readOnly: true}
- {name: storage, mountPath: /var/lib/dynamic-scoring}
{{- range $i, $name := .Values.agent.secrets }}
- {name: secret-{{ $i }}, mountPath: /etc/dynamic-scoring/secrets/{{ $name }}, readOnly: true}
{{- end }}
{{- if eq (include "ds.serviceCA" .) "true" }}
- {name: service-ca, mountPath: /var/run/secrets/openshift/service-ca, readOnly: true}
{{- end }}
{{- include "ds.webMounts" (dict "part" .Values.agent "service" (include "ds.agentServiceName" .)) }}
{{- with .Values.agent.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ds.agentVolumes" -}}
- name: config
  configMap:
    name: {{ include "ds.agent" . }}
- name: storage
  {{- if eq .Values.agent.storage.type "persistentVolumeClaim" }}
  persistentVolumeClaim:
    claimName: {{ include "ds.agent" . }}
  {{- else }}
  emptyDir:
    sizeLimit: {{ .Values.agent.storage.size }}
  {{- end }}
{{- range $i, $name := .Values.agent.secrets }}
- name: secret-{{ $i }}
  secret:
    secretName: {{ $name }}
    optional: true
{{- end }}
{{- if eq (include "ds.serviceCA" .) "true" }}
- name: service-ca
  configMap:
    name: {{ .Values.agent.serviceCA.configMap }}
    items:
      - {key: {{ .Values.agent.serviceCA.key }}, path: service-ca.crt}
    optional: true
{{- end }}
{{- include "ds.webVolumes" (dict "part" .Values.agent "service" (include "ds.agentServiceName" .)) }}
{{- with .Values.agent.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ds.agentDeployment" -}}
{{- $part := .Values.agent -}}
{{- $selector := include "ds.agentSelector" . -}}
{{- $security := dict "root" . "part" $part -}}
{{- $claim := eq $part.storage.type "persistentVolumeClaim" -}}
{{- if and $claim (not (hasKey (default dict $part.podSecurityContext) "fsGroup")) -}}
{{- $security = dict "root" . "part" (dict "podSecurityContext" (merge (dict "fsGroup" 65532) (deepCopy (default dict $part.podSecurityContext)))) -}}
{{- end -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "ds.agentMeta" (dict "root" . "name" (include "ds.agent" .)) | nindent 2 }}
  {{- with $part.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  replicas: {{ $part.replicas }}
  revisionHistoryLimit: {{ $part.revisionHistoryLimit }}
  {{- with default (eq (int $part.replicas) 1 | ternary (dict "type" "Recreate") dict) $part.strategy }}
  strategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
  template:
    metadata:
      labels:
        {{- merge (include "ds.agentLabels" . | fromYaml) (default dict $part.podLabels) | toYaml | nindent 8 }}
      annotations:
        {{- merge (dict "checksum/config" (include "ds.agentYaml" . | sha256sum)) (default dict $part.podAnnotations) | toYaml | nindent 8 }}
    spec:
      serviceAccountName: {{ include "ds.agentServiceAccount" . }}
      automountServiceAccountToken: true
      terminationGracePeriodSeconds: {{ $part.terminationGracePeriodSeconds }}
      securityContext:
        {{- include "ds.podSecurityContext" $security | nindent 8 }}
      {{- with include "ds.podPlacement" (dict "root" . "part" $part "selector" $selector) | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      containers:
        - name: {{ include "ds.agent" . }}
          image: {{ include "ds.agentImage" . | quote }}
          imagePullPolicy: {{ default .Values.image.pullPolicy .Values.spokeSetting.agent.image.pullPolicy }}
          args:
            {{- include "ds.agentArgs" . | nindent 12 }}
          {{- with include "ds.agentEnv" . | trim }}
          env:
            {{- . | nindent 12 }}
          {{- end }}
          ports:
            - {name: http-metrics, containerPort: 8080}
            - {name: health, containerPort: 8081}
            {{- if $part.otlp.enabled }}
            - {name: otlp, containerPort: 4318}
            {{- end }}
          {{- include "ds.containerRest" (dict "part" $part) | nindent 10 }}
          volumeMounts:
            {{- include "ds.agentMounts" . | trim | nindent 12 }}
      volumes:
        {{- include "ds.agentVolumes" . | trim | nindent 8 }}
{{- end -}}
