{{/* The optimiser: plans placements on the hub. */}}

{{/* ds.optimizerOpen: "true" where it can tell who asks, so that it may serve others than `kubectl port-forward`. Whoever made the Secret
     of configSecret decides. */}}
{{- define "ds.optimizerOpen" -}}
{{- with .Values.optimizer -}}
{{- $clients := get (default dict .web.config.tls_server_config) "client_auth_type" -}}
{{- if or .tokenSecret.name .web.kubernetesAuth.enabled .web.config.basic_auth_users .web.configSecret (eq (toString $clients) "RequireAndVerifyClientCert") -}}
true
{{- end -}}
{{- end -}}
{{- end -}}
