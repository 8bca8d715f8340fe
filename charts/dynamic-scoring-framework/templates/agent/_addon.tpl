{{/* The add-ons on the clusters. OCM calls one available while each Deployment of its AddOnTemplate has a ready pod, and can leave
     none out. The agent has one for itself, so that nothing beside it makes scorers silent. */}}

{{/* ds.addonVersion: v1beta1 only where the hub no longer serves v1alpha1, which needs no conversion by OCM's webhook. There is no
     AddOnTemplate in v1beta1. */}}
{{- define "ds.addonVersion" -}}
{{- $old := "addon.open-cluster-management.io/v1alpha1" -}}
{{- $new := "addon.open-cluster-management.io/v1beta1" -}}
{{- $served := .Capabilities.APIVersions -}}
{{ and ($served.Has (printf "%s/ClusterManagementAddOn" $new)) (not ($served.Has (printf "%s/ClusterManagementAddOn" $old))) | ternary $new $old }}
{{- end -}}

{{/* ds.managementAddOn (dict "root" . "name" ADD-ON "description" TEXT) */}}
{{- define "ds.managementAddOn" -}}
{{- $version := include "ds.addonVersion" .root -}}
apiVersion: {{ $version }}
kind: ClusterManagementAddOn
metadata:
  name: {{ .name }}
  labels:
    {{- include "ds.labels" (dict "root" .root "component" "agent") | nindent 4 }}
  annotations:
    addon.open-cluster-management.io/lifecycle: addon-manager
spec:
  addOnMeta:
    displayName: {{ .name }}
    description: {{ .description | quote }}
  {{- $configs := dict
      "addontemplates" (dict "name" (include "ds.template" .))
      "addondeploymentconfigs" (dict "name" (include "ds.deploymentConfig" .root) "namespace" (include "ds.namespace" .root)) }}
  {{- $beta := hasSuffix "/v1beta1" $version }}
  {{ $beta | ternary "defaultConfigs" "supportedConfigs" }}:
    {{- range $resource, $config := $configs }}
    - group: addon.open-cluster-management.io
      resource: {{ $resource }}
      {{- $beta | ternary $config (dict "defaultConfig" $config) | toYaml | nindent 6 }}
    {{- end }}
  installStrategy:
    type: Placements
    placements:
      - name: {{ include "ds.placement" .root }}
        namespace: {{ include "ds.placementNamespace" .root }}
        rolloutStrategy:
          {{- toYaml .root.Values.agent.rolloutStrategy | nindent 10 }}
{{- end -}}

{{/* What is beside the agent on each cluster: a list, empty by default. */}}
{{- define "ds.extras" -}}
{{- if .Values.agent.otlp.prometheus.enabled }}
- {{ include "ds.prometheusServiceAccountObject" . | nindent 2 | trim }}
- {{ include "ds.prometheusConfigMap" . | nindent 2 | trim }}
- {{ include "ds.prometheusNetworkPolicy" . | nindent 2 | trim }}
- {{ include "ds.prometheusDeployment" . | nindent 2 | trim }}
- {{ include "ds.prometheusService" . | nindent 2 | trim }}
{{- end }}
{{- range $model, $sample := include "ds.samples" . | fromYaml }}
{{- $it := dict "root" $ "model" $model "api" $sample.api }}
- {{ include "ds.sampleDeployment" $it | nindent 2 | trim }}
- {{ include "ds.sampleService" $it | nindent 2 | trim }}
{{- if $.Values.agent.networkPolicy.enabled }}
- {{ include "ds.sampleNetworkPolicy" $it | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- if .Values.policyWatcher.enabled }}
- {{ include "ds.watcherServiceAccountObject" . | nindent 2 | trim }}
- {{ include "ds.watcherClusterRole" . | nindent 2 | trim }}
- {{ include "ds.watcherClusterRoleBinding" . | nindent 2 | trim }}
- {{ include "ds.watcherClaim" . | nindent 2 | trim }}
- {{ include "ds.watcherDeployment" . | nindent 2 | trim }}
{{- if .Values.agent.networkPolicy.enabled }}
- {{ include "ds.watcherNetworkPolicy" . | nindent 2 | trim }}
{{- end }}
{{- if .Values.policyWatcher.podMonitor.enabled }}
- {{ include "ds.watcherMonitor" . | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- range .Values.agent.extraManifests }}
- {{ toYaml . | nindent 2 | trim }}
{{- end }}
{{- end -}}
