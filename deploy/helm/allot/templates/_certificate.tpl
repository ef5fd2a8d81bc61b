{{/* The name of the Secret with the certificate. */}}
{{- define "allot.tlsSecret" -}}
{{ default (printf "%s-tls" (include "allot.scheduler" .)) .Values.certificate.secretName }}
{{- end }}

{{/*
JSON with crt, key and caBundle, each in base64. key is "" if the chart makes no Secret. A certificate that Helm has made
is kept in .Values, so that Secret and webhook get the same one.
*/}}
{{- define "allot.tls" -}}
{{- $c := .Values.certificate -}}
{{- if eq $c.from "files" -}}
{{- dict "crt" (b64enc $c.crt) "key" (b64enc $c.key) "caBundle" (b64enc $c.crt) | toJson -}}
{{- else if eq $c.from "helm" -}}
{{- if not (hasKey .Values "madeTls") -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace (include "allot.tlsSecret" .) -}}
{{- $data := dig "data" dict ($there | default dict) -}}
{{- if and (get $data "tls.crt") (get $data "tls.key") -}}
{{- $_ := set .Values "madeTls" (dict "crt" (get $data "tls.crt") "key" (get $data "tls.key") "caBundle" (get $data "tls.crt")) -}}
{{- else -}}
{{- $hosts := include "allot.hosts" . | fromJsonArray -}}
{{- $made := genSelfSignedCert (first $hosts) (list "127.0.0.1") (append $hosts "localhost") (int $c.days) -}}
{{- $_ := set .Values "madeTls" (dict "crt" (b64enc $made.Cert) "key" (b64enc $made.Key) "caBundle" (b64enc $made.Cert)) -}}
{{- end -}}
{{- end -}}
{{- .Values.madeTls | toJson -}}
{{- else -}}
{{- dict "crt" "" "key" "" "caBundle" (eq $c.from "secret" | ternary $c.caBundle "") | toJson -}}
{{- end -}}
{{- end }}
