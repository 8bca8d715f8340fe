{{/* Scoring APIs of ours on each cluster, beside the agent, and their DynamicScorers. files/samples.yaml describes them. */}}

{{/* ds.samples: those that are enabled: model → {api, scorers}. */}}
{{- define "ds.samples" -}}
{{- $all := .Files.Get "files/samples.yaml" | fromYaml -}}
{{- range $model := keys $all | sortAlpha }}
{{- if (get $.Values.samples $model).enabled }}
{{ dict $model (get $all $model) | toYaml }}
{{- end }}
{{- end }}
{{- end -}}

{{/* ds.sampleName (dict "root" . "name" NAME): a second release on the same clusters has names of its own. */}}
{{- define "ds.sampleName" -}}
{{- $prefix := include "ds.prefix" .root -}}
{{ eq $prefix "dynamic-scoring" | ternary .name (printf "%s-%s" $prefix .name | trunc 63 | trimSuffix "-") }}
{{- end -}}

{{/* The templates below take (dict "root" . "model" MODEL "api" API). */}}
{{- define "ds.sampleSelector" -}}
app: {{ include "ds.sampleName" (dict "root" .root "name" .api) }}
{{- end -}}

{{- define "ds.sampleLabels" -}}
{{- $labels := include "ds.sampleSelector" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/component" "sample" -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" (include "ds.chart" .root) -}}
{{- $_ := set $labels "app.kubernetes.io/version" (.root.Chart.AppVersion | replace "+" "_") -}}
{{- merge $labels (default dict .root.Values.commonLabels) | toYaml }}
{{- end -}}

{{- define "ds.sampleDeployment" -}}
{{- $values := get .root.Values.samples .model -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "ds.sampleName" (dict "root" .root "name" .api) }}
  namespace: {{ include "ds.agentNamespace" .root }}
  labels:
    {{- include "ds.sampleLabels" . | nindent 4 }}
  {{- if $values.skupper }}
  annotations:
    skupper.io/proxy: tcp
    skupper.io/address: {{ include "ds.sampleName" (dict "root" .root "name" .api) }}
    skupper.io/port: "8000"
  {{- end }}
spec:
  replicas: 1
  selector:
    matchLabels:
      {{- include "ds.sampleSelector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "ds.sampleLabels" . | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      securityContext:
        {{- include "ds.podSecurityContext" (dict "root" .root "part" .root.Values.agent) | nindent 8 }}
      {{- with include "ds.imagePullSecrets" .root }}
      imagePullSecrets:
        {{- . | trim | nindent 8 }}
      {{- end }}
      containers:
        - name: scorer
          image: {{ include "ds.agentImage" .root }}
          imagePullPolicy: {{ default .root.Values.image.pullPolicy .root.Values.spokeSetting.agent.image.pullPolicy }}
          args:
            - scorer
            - {{ .model }}
            - --log.level={{ .root.Values.log.level }}
            - --log.format={{ .root.Values.log.format }}
            {{- range $values.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          {{- with $values.extraEnv }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - {name: http, containerPort: 8000}
          livenessProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 20
          readinessProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 10
          securityContext:
            {{- toYaml .root.Values.agent.securityContext | nindent 12 }}
          resources:
            {{- toYaml .root.Values.samples.resources | nindent 12 }}
          {{- with $values.extraVolumeMounts }}
          volumeMounts:
            {{- toYaml . | nindent 12 }}
          {{- end }}
      {{- with $values.extraVolumes }}
      volumes:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}

{{/* A NodePort is for clients outside of the cluster, and Skupper's router for those of other clusters. Only a language model is
     asked over the network. */}}
{{- define "ds.sampleNetworkPolicy" -}}
{{- $values := get .root.Values.samples .model -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "ds.sampleName" (dict "root" .root "name" .api) }}
  namespace: {{ include "ds.agentNamespace" .root }}
  labels:
    {{- include "ds.sampleLabels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "ds.sampleSelector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - {{ if not $values.nodePort }}from:
        - namespaceSelector: {}
      {{ end }}ports:
        - {protocol: TCP, port: 8000}
  {{- if eq .model "llm" }}
  {{- $spec := include "ds.networkPolicySpec" (dict "part" .root.Values.agent "selector" "" "ingress" list) | fromYaml }}
  egress:
    {{- toYaml $spec.egress | nindent 4 }}
  {{- else }}
  egress: []
  {{- end }}
{{- end -}}

{{- define "ds.sampleService" -}}
{{- $values := get .root.Values.samples .model -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "ds.sampleName" (dict "root" .root "name" .api) }}
  namespace: {{ include "ds.agentNamespace" .root }}
  labels:
    {{- include "ds.sampleLabels" . | nindent 4 }}
spec:
  {{- if $values.nodePort }}
  type: NodePort
  {{- end }}
  selector:
    {{- include "ds.sampleSelector" . | nindent 4 }}
  ports:
    - {name: http, port: 8000, targetPort: http{{ with $values.nodePort }}, nodePort: {{ . }}{{ end }}}
{{- end -}}
