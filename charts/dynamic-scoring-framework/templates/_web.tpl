{{/* How /metrics and the pages are secured. Each takes (dict "part" VALUES "service" NAME), where VALUES is .Values.controller,
     .Values.optimizer or .Values.agent. */}}

{{- define "ds.webName" -}}{{ trimSuffix "-service" .service }}-web{{- end -}}

{{/* ds.webCertificate: the Secret with the certificate; nothing without one. */}}
{{- define "ds.webCertificate" -}}
{{- $tls := .part.web.tls -}}
{{ default ($tls.servingCert | ternary (printf "%s-tls" (trimSuffix "-service" .service)) "") $tls.secretName }}
{{- end -}}

{{/* ds.webConfig: the file; nothing if there is none, or a Secret of the user's. */}}
{{- define "ds.webConfig" -}}
{{- $config := deepCopy .part.web.config -}}
{{- if include "ds.webCertificate" . -}}
{{- $files := dict "cert_file" "/etc/dynamic-scoring/tls/tls.crt" "key_file" "/etc/dynamic-scoring/tls/tls.key" -}}
{{- $_ := set $config "tls_server_config" (merge (default dict $config.tls_server_config) $files) -}}
{{- end -}}
{{- if and $config (not .part.web.configSecret) }}{{ toYaml $config }}{{ end -}}
{{- end -}}

{{- define "ds.webFile" -}}
{{- if or .part.web.configSecret (include "ds.webConfig" .) }}/etc/dynamic-scoring/web/web.yaml{{ end -}}
{{- end -}}

{{/* ds.webTLS: "true" where the chart knows of TLS. */}}
{{- define "ds.webTLS" -}}
{{- if or (include "ds.webCertificate" .) .part.web.config.tls_server_config }}true{{ end -}}
{{- end -}}

{{- define "ds.webSecured" -}}
{{- if or (include "ds.webFile" .) .part.web.kubernetesAuth.enabled }}true{{ end -}}
{{- end -}}

{{- define "ds.webArgs" -}}
{{- with include "ds.webFile" . }}
- --web.config.file={{ . }}
{{- end }}
{{- with .part.web.kubernetesAuth }}
{{- if .enabled }}
- --web.kubernetes-auth
{{- with .cacheTtl }}
- --web.kubernetes-auth.cache-ttl={{ . }}
{{- end }}
{{- with .timeout }}
- --web.kubernetes-auth.timeout={{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "ds.webMounts" -}}
{{- if include "ds.webFile" . }}
- {name: web, mountPath: /etc/dynamic-scoring/web, readOnly: true}
{{- end }}
{{- if include "ds.webCertificate" . }}
- {name: tls, mountPath: /etc/dynamic-scoring/tls, readOnly: true}
{{- end }}
{{- end -}}

{{/* Whole folders, so that changes reach the program, which reads the files again. */}}
{{- define "ds.webVolumes" -}}
{{- if include "ds.webFile" . }}
- name: web
  secret:
    secretName: {{ default (include "ds.webName" .) .part.web.configSecret }}
{{- end }}
{{- with include "ds.webCertificate" . }}
- name: tls
  secret:
    secretName: {{ . }}
{{- end }}
{{- end -}}

{{/* ds.webRole (dict "name" NAME "labels" LABELS "path" PATH "verb" VERB): a right to what --web.kubernetes-auth protects; to get it by
     default. */}}
{{- define "ds.webRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .name }}
  labels:
    {{- .labels | nindent 4 }}
rules:
  - {nonResourceURLs: [{{ .path }}], verbs: [{{ default "get" .verb }}]}
{{- end -}}

{{/* ds.webReaders (dict "name" NAME "labels" LABELS "readers" SUBJECTS): binds the role of that name. */}}
{{- define "ds.webReaders" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .name }}
  labels:
    {{- .labels | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ .name }}}
subjects:
  {{- toYaml .readers | nindent 2 }}
{{- end -}}

{{/* ds.webObjects, for a part on the hub, also takes "root", "labels" and "prefix", what the roles' names begin with: the Secret with the
     file, and the rights to read. */}}
{{- define "ds.webObjects" -}}
{{- $all := . -}}
{{- with include "ds.webConfig" . }}
apiVersion: v1
kind: Secret
metadata:
  name: {{ include "ds.webName" $all }}
  namespace: {{ include "ds.namespace" $all.root }}
  labels:
    {{- $all.labels | nindent 4 }}
stringData:
  web.yaml: |
    {{- . | nindent 4 }}
{{- end }}
{{- with .part.web.kubernetesAuth }}
{{- if .enabled }}
{{- $metrics := dict "name" (printf "%s-metrics-reader" $all.prefix) "labels" $all.labels "path" "/metrics" "readers" .readers }}
---
{{ include "ds.webRole" $metrics }}
---
{{ include "ds.webRole" (dict "name" (printf "%s-status-reader" $all.prefix) "labels" $all.labels "path" "/status") }}
{{- if .readers }}
---
{{ include "ds.webReaders" $metrics }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The rights that --web.kubernetes-auth needs itself. */}}
{{- define "ds.webReviews" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end -}}

{{/* ds.serviceAnnotations: those of the values, and the one by which OpenShift makes the certificate. */}}
{{- define "ds.serviceAnnotations" -}}
{{- $own := dict -}}
{{- if .part.web.tls.servingCert -}}
{{- $own = dict "service.beta.openshift.io/serving-cert-secret-name" (include "ds.webCertificate" .) -}}
{{- end -}}
{{- with merge $own (default dict .part.service.annotations) }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* ds.webEndpoint also takes "endpoint", what the values say of a monitor's endpoint, and "namespace", the Service's: how Prometheus
     reaches it, where the values say nothing. */}}
{{- define "ds.webEndpoint" -}}
{{- $endpoint := deepCopy .endpoint -}}
{{- if include "ds.webTLS" . -}}
{{- $ca := dict "secret" (dict "name" (include "ds.webCertificate" .) "key" "ca.crt") -}}
{{- if .part.web.tls.servingCert -}}
{{- $ca = dict "configMap" (dict "name" "openshift-service-ca.crt" "key" "service-ca.crt") -}}
{{- end -}}
{{- $tls := dict "serverName" (printf "%s.%s.svc" .service .namespace) "ca" $ca -}}
{{- $endpoint = merge $endpoint (dict "scheme" "https") (hasKey $endpoint "tlsConfig" | ternary dict (dict "tlsConfig" $tls)) -}}
{{- end -}}
{{- if and .part.web.kubernetesAuth.enabled (not (include "ds.hasCredentials" $endpoint)) -}}
{{- $_ := set $endpoint "bearerTokenFile" "/var/run/secrets/kubernetes.io/serviceaccount/token" -}}
{{- end -}}
{{- toYaml $endpoint }}
{{- end -}}

{{- define "ds.hasCredentials" -}}
{{- range list "authorization" "basicAuth" "bearerTokenFile" "bearerTokenSecret" "oauth2" -}}
{{- if hasKey $ . }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* ds.checkWeb also takes "path", the part's, and "monitors", the names of its monitors: what values.schema.json cannot say. */}}
{{- define "ds.checkWeb" -}}
{{- $web := .part.web -}}
{{- $users := $web.config.basic_auth_users -}}
{{- if and $web.config $web.configSecret -}}
{{- fail (printf "%s.web.config and %s.web.configSecret: there is one web configuration; set one of them" .path .path) -}}
{{- end -}}
{{- if and $users $web.kubernetesAuth.enabled -}}
{{- fail (printf "%s.web.config.basic_auth_users and %s.web.kubernetesAuth.enabled: enable one of them" .path .path) -}}
{{- end -}}
{{- range .monitors -}}
{{- $monitor := get $.part . -}}
{{- $path := printf "%s.%s.endpoint" $.path . -}}
{{- if $monitor.enabled -}}
{{- if and $users (not $monitor.endpoint.basicAuth) -}}
{{- fail (printf "%s.basicAuth is not set, but %s.web.config.basic_auth_users is: Prometheus would get HTTP 401" $path $.path) -}}
{{- end -}}
{{- if and (include "ds.webTLS" $) (not (include "ds.webCertificate" $)) (not $monitor.endpoint.tlsConfig) -}}
{{- fail (printf "%s.tlsConfig is not set, and %s.web.tls.secretName neither: Prometheus would not know the CA" $path $.path) -}}
{{- end -}}
{{- if and (eq . "podMonitor") $web.kubernetesAuth.enabled (not (include "ds.hasCredentials" $monitor.endpoint)) -}}
{{- fail (printf "%s.authorization is not set: PodMonitors cannot name the file of Prometheus' token, which %s.web.kubernetesAuth needs" $path $.path) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
