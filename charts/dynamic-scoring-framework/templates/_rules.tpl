{{/* Alerts and recording rules, made of files/alerts, which are copies of alerts/. */}}

{{/* ds.rule (dict "root" . "rule" RULE "cluster" NAME): the rule with what the values change and the cluster's name, if there is
one; or nothing if they disable it. */}}
{{- define "ds.rule" -}}
{{- $values := .root.Values.prometheusRule -}}
{{- $label := .root.Values.clusterLabel -}}
{{- $rule := deepCopy .rule -}}
{{- $own := default dict (get $values.rules (default $rule.record $rule.alert)) -}}
{{- /* As a label, not as a part of a recorded series' name, such as dynamic_score:cluster:avg. */ -}}
{{- $_ := set $rule "expr" (regexReplaceAll "(^|[^:\\w])cluster\\b" $rule.expr (printf "${1}%s" $label)) -}}
{{- /* Not those that other rules compare with a cluster's own series. */ -}}
{{- $named := ternary (dict $label .cluster) dict (and (not (empty .cluster)) (not (regexMatch "^(node|pod):" (default "" $rule.record)))) -}}
{{- with merge (deepCopy (default dict $own.labels)) $values.additionalRuleLabels $named (default dict $rule.labels) -}}
{{- $_ := set $rule "labels" . -}}
{{- end -}}
{{- if $rule.alert -}}
{{- with $own.for }}{{ $_ := set $rule "for" . }}{{ end -}}
{{- with $values.keepFiringFor }}{{ $_ := set $rule "keep_firing_for" . }}{{ end -}}
{{- range $name, $text := $rule.annotations -}}
{{- $_ := set $rule.annotations $name (regexReplaceAll "\\$labels\\.cluster\\b" $text (printf "$$labels.%s" $label)) -}}
{{- end -}}
{{- with $values.runbookUrl -}}
{{- $_ := set $rule.annotations "runbook_url" (printf "%s/%s" (trimSuffix "/" .) (base $rule.annotations.runbook_url)) -}}
{{- end -}}
{{- end -}}
{{- if dig "enabled" true $own }}{{ toYaml $rule }}{{ end -}}
{{- end -}}

{{/* ds.ruleGroups (dict "root" . "files" NAMES "cluster" NAME): {groups: [...]}, without those of which no rule is left. */}}
{{- define "ds.ruleGroups" -}}
{{- $root := .root -}}
{{- $cluster := .cluster -}}
{{- $groups := list -}}
{{- range .files -}}
{{- range $group := ($root.Files.Get (printf "files/alerts/%s.yaml" .) | fromYaml).groups -}}
{{- $rules := list -}}
{{- range $group.rules -}}
{{- with include "ds.rule" (dict "root" $root "rule" . "cluster" $cluster) }}{{ $rules = append $rules (fromYaml .) }}{{ end -}}
{{- end -}}
{{- with $rules }}{{ $groups = append $groups (merge (dict "rules" .) (omit $group "rules")) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- dict "groups" $groups | toYaml }}
{{- end -}}

{{- define "ds.ruleVersion" -}}
{{ get (dict "PrometheusRule" "monitoring.coreos.com/v1" "VMRule" "operator.victoriametrics.com/v1beta1") .Values.prometheusRule.kind }}
{{- end -}}

{{/* "true" where clusters get rules. */}}
{{- define "ds.rulesOnClusters" -}}
{{- if and .Values.prometheusRule.enabled .Values.prometheusRule.clusters }}true{{ end -}}
{{- end -}}
