{{/* Every name, namespace and image of the chart is made here, and nowhere else. */}}

{{- define "ds.chart" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* What all names begin with, also those of cluster-scoped objects, and the add-on's name. A Service's has at most 63
     characters, the longest suffix of one that is not cut 14. */}}
{{- define "ds.fullname" -}}
{{- $chart := include "ds.chart" . -}}
{{- $name := contains $chart .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $chart) -}}
{{- default $name .Values.fullnameOverride | trunc 49 | trimSuffix "-" }}
{{- end -}}

{{/* What the names of the agent's objects begin with: of the release that the documents install, the names that they use. */}}
{{- define "ds.prefix" -}}
{{- $name := include "ds.fullname" . -}}
{{ eq $name "dynamic-scoring-framework" | ternary "dynamic-scoring" $name }}
{{- end -}}

{{- define "ds.controller" -}}{{ include "ds.fullname" . }}-controller{{- end -}}
{{- define "ds.optimizer" -}}{{ include "ds.fullname" . }}-mcp{{- end -}}
{{- define "ds.addon" -}}{{ include "ds.fullname" . }}{{- end -}}
{{- define "ds.extrasAddon" -}}{{ include "ds.fullname" . }}-extras{{- end -}}
{{- define "ds.agent" -}}{{ include "ds.prefix" . }}-agent{{- end -}}
{{- define "ds.agentServiceName" -}}{{ include "ds.agent" . }}-service{{- end -}}
{{- define "ds.placement" -}}{{ default (printf "%s-placement" (include "ds.prefix" .)) .Values.agent.placement.existing.name }}{{- end -}}
{{- define "ds.placementNamespace" -}}{{ default (include "ds.namespace" .) .Values.agent.placement.existing.namespace }}{{- end -}}
{{- define "ds.deploymentConfig" -}}{{ include "ds.prefix" . }}-addon-config{{- end -}}
{{/* ds.template (dict "root" . "name" ADD-ON) */}}
{{- define "ds.template" -}}{{ printf "%s-%s" .name .root.Chart.Version | replace "+" "-" | lower }}{{- end -}}

{{- define "ds.controllerServiceAccount" -}}
{{ default (.Values.controller.serviceAccount.create | ternary (include "ds.controller" .) "default") .Values.controller.serviceAccount.name }}
{{- end -}}
{{- define "ds.optimizerServiceAccount" -}}
{{ default (.Values.optimizer.serviceAccount.create | ternary (printf "%s-sa" (include "ds.optimizer" .)) "default") .Values.optimizer.serviceAccount.name }}
{{- end -}}
{{- define "ds.agentServiceAccount" -}}
{{ default (printf "%s-sa" (include "ds.agent" .)) .Values.agent.serviceAccount.name }}
{{- end -}}

{{/* Namespaces: on the hub, and of the agent on the clusters. */}}
{{- define "ds.namespace" -}}
{{ coalesce .Values.hubSetting.namespace .Values.namespaceOverride .Release.Namespace }}
{{- end -}}
{{- define "ds.agentNamespace" -}}{{ .Values.spokeSetting.namespace }}{{- end -}}

{{/* ds.image (dict "root" . "own" IMAGE): the common image, or what a part's own {name, tag} says. */}}
{{- define "ds.image" -}}
{{- $image := .root.Values.image -}}
{{- $name := printf "%s/%s" (default $image.registry .root.Values.global.imageRegistry) $image.repository -}}
{{- $tag := coalesce .own.tag $image.tag .root.Chart.AppVersion -}}
{{- if and $image.digest (not .own.name) (not .own.tag) -}}
{{ $name }}@{{ $image.digest }}
{{- else -}}
{{ default $name .own.name }}:{{ $tag }}
{{- end -}}
{{- end -}}
{{- define "ds.controllerImage" -}}
{{ include "ds.image" (dict "root" . "own" .Values.hubSetting.resourceController.image) }}
{{- end -}}
{{- define "ds.agentImage" -}}
{{ include "ds.image" (dict "root" . "own" .Values.spokeSetting.agent.image) }}
{{- end -}}

{{/* Pull secrets, as names or as {name: NAME}. */}}
{{- define "ds.imagePullSecrets" -}}
{{- range concat (default list .Values.global.imagePullSecrets) (default list .Values.imagePullSecrets) | uniq }}
- name: {{ kindIs "string" . | ternary . (get (kindIs "map" . | ternary . dict) "name") | quote }}
{{- end }}
{{- end -}}

{{/* ds.selector (dict "root" . "component" COMPONENT): immutable, so nothing that a release or a value changes. */}}
{{- define "ds.selector" -}}
app.kubernetes.io/name: {{ include "ds.chart" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* ds.labels (dict "root" . "component" COMPONENT): of objects on the hub. */}}
{{- define "ds.labels" -}}
{{- $labels := include "ds.selector" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" (include "ds.chart" .root) -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/version" (.root.Chart.AppVersion | replace "+" "_") -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63) -}}
{{- merge $labels (default dict .root.Values.commonLabels) | toYaml }}
{{- end -}}

{{/* The framework's documents select the optimiser's pods by this label. */}}
{{- define "ds.optimizerSelector" -}}
app: {{ include "ds.optimizer" . }}
{{- end -}}
{{- define "ds.optimizerLabels" -}}
{{- $labels := include "ds.labels" (dict "root" . "component" "optimizer") | fromYaml -}}
{{- merge (include "ds.optimizerSelector" . | fromYaml) $labels | toYaml }}
{{- end -}}

{{/* The selector of the agent's pods, which is that of the reference's Deployment, so that an upgrade can replace it. */}}
{{- define "ds.agentSelector" -}}
app: {{ include "ds.agent" . }}
{{- end -}}

{{/* Labels of objects on the clusters. Helm does not manage these. */}}
{{- define "ds.agentLabels" -}}
{{- $labels := include "ds.agentSelector" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/name" (include "ds.chart" .) -}}
{{- $_ := set $labels "app.kubernetes.io/instance" (include "ds.addon" .) -}}
{{- $_ := set $labels "app.kubernetes.io/component" "agent" -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" (include "ds.chart" .) -}}
{{- $_ := set $labels "app.kubernetes.io/version" (.Chart.AppVersion | replace "+" "_") -}}
{{- merge $labels (default dict .Values.commonLabels) | toYaml }}
{{- end -}}

{{/* "true" where the hub, or the value, says OpenShift. */}}
{{- define "ds.openshift" -}}
{{- if eq (toString .Values.openshift) "auto" -}}
{{ or (.Capabilities.APIVersions.Has "security.openshift.io/v1") (.Capabilities.APIVersions.Has "route.openshift.io/v1") }}
{{- else -}}
{{ .Values.openshift }}
{{- end -}}
{{- end -}}
{{- define "ds.serviceCA" -}}
{{ eq (toString .Values.agent.serviceCA.enabled) "auto" | ternary (include "ds.openshift" .) (toString .Values.agent.serviceCA.enabled) }}
{{- end -}}
