{{/* Lines of settings of a dict: true and false are on and off; null leaves a setting out. */}}
{{- define "allot.lines" -}}
{{- range $name, $value := . }}
{{- if kindIs "bool" $value }}
{{ $name }} = {{ ternary "on" "off" $value }}
{{- else if kindIs "string" $value }}
{{ $name }} = {{ $value }}
{{- else if not (kindIs "invalid" $value) }}
{{ $name }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* "true": pods are placed by how much others use of GPUs. */}}
{{- define "allot.placesByUse" -}}
{{- $value := get .Values.scheduler.settings "place_by_use" -}}
{{- or (eq (toString $value) "true") (eq (toString $value) "on") -}}
{{- end }}

{{- define "allot.daemonSettings" -}}
{{- $daemon := .Values.daemon -}}
{{- $own := dict "kube_api" "in-cluster" -}}
{{- if $daemon.devicePlugin }}
{{- $_ := set $own "kube_plugin" true }}
{{- $_ := set $own "kube_vocabulary" .Values.vocabulary }}
{{- end }}
{{- if .Values.dra.enabled }}
{{- $_ := set $own "kube_dra" true }}
{{- $_ := set $own "kube_dra_dir" (printf "%s/plugins_registry" $daemon.kubeletDir) }}
{{- end }}
{{- if ne $daemon.kubeletDir "/var/lib/kubelet" }}
{{- $_ := set $own "kube_plugin_dir" (printf "%s/device-plugins" $daemon.kubeletDir) }}
{{- $_ := set $own "kube_pod_resources" (printf "%s/pod-resources/kubelet.sock" $daemon.kubeletDir) }}
{{- end }}
{{- if $daemon.metrics.enabled }}
{{- $_ := set $own "metrics_listen" (printf "0.0.0.0:%v" $daemon.metrics.port) }}
{{- if $daemon.metrics.tokenSecret }}
{{- $_ := set $own "metrics_token_file" "/etc/allot-metrics/token" }}
{{- else }}
{{- $_ := set $own "metrics_open" true }}
{{- end }}
{{- end }}
{{- if and .Values.scheduler.enabled (eq (include "allot.placesByUse" .) "true") (not (hasKey $daemon.settings "kube_use_window")) }}
{{- $_ := set $own "kube_use_window" "5m" }}
{{- end }}
{{- include "allot.lines" (merge $own $daemon.settings) | trim }}
{{- end }}

{{- define "allot.schedulerSettings" -}}
{{- $scheduler := .Values.scheduler -}}
{{- $name := include "allot.scheduler" . -}}
{{- $own := dict "kube_api" "in-cluster" "https_listen" "0.0.0.0:9443" -}}
{{- $_ := set $own "tls_certificate" "/etc/allot/tls/tls.crt" }}
{{- $_ := set $own "tls_key" "/etc/allot/tls/tls.key" }}
{{- $_ := set $own "bind_limit" (printf "%vs" $scheduler.bindSeconds) }}
{{- $_ := set $own "gang_wait" (printf "%vs" $scheduler.gangSeconds) }}
{{- if $scheduler.kubeScheduler.enabled }}
{{- $_ := set $own "http_listen" "127.0.0.1:9398" }}
{{- $_ := set $own "lease" "none" }}
{{- $_ := set $own "kube_scheduler_lease" (printf "%s/%s" .Release.Namespace $name) }}
{{- else }}
{{- $_ := set $own "http_listen" "off" }}
{{- $_ := set $own "lease" (printf "%s/%s" .Release.Namespace $name) }}
{{- end }}
{{- if .Values.dra.convert }}
{{- $_ := set $own "make_claims" true }}
{{- end }}
{{- if $scheduler.auditVolume }}
{{- $_ := set $own "audit_log" "/var/log/allot/audit.log" }}
{{- end }}
{{- if $scheduler.clients.caSecret }}
{{- $_ := set $own "client_ca" "/etc/allot/clients/ca.crt" }}
{{- end }}
{{- if $scheduler.clients.tokenSecret }}
{{- $_ := set $own "token_file" "/etc/allot/clients-token/token" }}
{{- end }}
{{- if $scheduler.page.enabled }}
{{- $_ := set $own "web_listen" (printf "0.0.0.0:%v" $scheduler.page.port) }}
{{- $_ := set $own "web_token_file" "/etc/allot/page-token/token" }}
{{- $_ := set $own "web_tls_certificate" "/etc/allot/tls/tls.crt" }}
{{- $_ := set $own "web_tls_key" "/etc/allot/tls/tls.key" }}
{{- with $scheduler.page.nodeUrl }}
{{- $_ := set $own "web_node_url" . }}
{{- end }}
{{- end }}
{{- if and $scheduler.kubeScheduler.enabled (or $scheduler.clients.caSecret $scheduler.clients.tokenSecret) }}
{{- $_ := set $own "client_local" true }}
{{- end }}
{{- include "allot.lines" (merge $own $scheduler.settings) | trim }}
{{- end }}

{{/*
What kube-scheduler asks its extender about, by the names that the settings give. gpu-manager's units kubelets count as they are,
so kube-scheduler does as well, and sees by itself where the end of others makes room. HAMi's count says nothing of memory; and of
pods that ask for both, a kube-scheduler that counts one of them forgets for minutes that a new node may serve them.
*/}}
{{- define "allot.managedResources" -}}
{{- $settings := .Values.scheduler.settings -}}
{{- range list
  (list "gpu_resource" "nvidia.com/gpu")
  (list "memory_resource" "nvidia.com/gpumem")
  (list "memory_percent_resource" "nvidia.com/gpumem-percentage")
  (list "cores_resource" "nvidia.com/gpucores")
  (list "priority_resource" "nvidia.com/priority") }}
- name: {{ get $settings (index . 0) | default (index . 1) }}
  ignoredByScheduler: true
{{- end }}
{{- range list
  (list "vcuda_core_resource" "tencent.com/vcuda-core")
  (list "vcuda_memory_resource" "tencent.com/vcuda-memory") }}
- name: {{ get $settings (index . 0) | default (index . 1) }}
{{- end }}
{{- end }}

{{- define "allot.schedulerName" -}}
{{ .Values.scheduler.settings.scheduler_name | default "allot-scheduler" }}
{{- end }}

{{/* Whose pods the webhook completes and checks. */}}
{{- define "allot.seenPods" -}}
- { key: allot.dev/webhook, operator: NotIn, values: [ignore] }
- { key: hami.io/webhook, operator: NotIn, values: [ignore] }
{{- end }}

{{- define "allot.seenNamespaces" -}}
{{ include "allot.seenPods" . }}
{{- with .Values.webhook.skipNamespaces }}
- { key: kubernetes.io/metadata.name, operator: NotIn, values: {{ toJson . }} }
{{- end }}
{{- end }}

{{/* What several values are together: said here, once, for all templates. */}}
{{- define "allot.check" -}}
{{- $scheduler := .Values.scheduler -}}
{{- $kube := $scheduler.kubeScheduler -}}
{{- $certificate := .Values.certificate -}}
{{- if and $scheduler.enabled (eq .Values.vocabulary "slices") }}
{{- fail "vocabulary: slices needs no scheduler: set scheduler.enabled to false, or vocabulary to hami or gpu-manager" }}
{{- end }}
{{- if not (or .Values.daemon.devicePlugin .Values.dra.enabled) }}
{{- fail "daemon.devicePlugin and dra.enabled: are both false: nodes would give nothing to pods" }}
{{- end }}
{{- if and .Values.dra.enabled (not .Values.daemon.enabled) }}
{{- fail "dra.enabled: needs daemon.enabled: allotd is the driver" }}
{{- end }}
{{- if and .Values.dra.enabled (semverCompare "<1.34-0" .Capabilities.KubeVersion.Version) }}
{{- fail "dra.enabled: needs Kubernetes 1.34 or newer" }}
{{- end }}
{{- if and .Values.dra.convert (not (and .Values.dra.enabled $scheduler.enabled .Values.webhook.enabled)) }}
{{- fail "dra.convert: needs dra.enabled, scheduler.enabled and webhook.enabled: the webhook turns limits into claims of the driver" }}
{{- end }}
{{- if and .Values.dra.convert $kube.enabled }}
{{- fail "dra.convert: the cluster's own kube-scheduler places claims: set scheduler.kubeScheduler.enabled to false" }}
{{- end }}
{{- if and $scheduler.enabled (not .Values.daemon.devicePlugin) (not .Values.dra.convert) }}
{{- fail "daemon.devicePlugin: false needs no scheduler: set scheduler.enabled to false, as the cluster's own places claims; or dra.convert to true" }}
{{- end }}
{{- if and .Values.test.claim (not .Values.dra.enabled) }}
{{- fail "test.claim: needs dra.enabled" }}
{{- end }}
{{- if and .Values.test.claim .Values.test.limits }}
{{- fail "test.claim and test.limits: must be one of them" }}
{{- end }}
{{- if not (or $scheduler.enabled .Values.daemon.enabled) }}
{{- fail "scheduler.enabled and daemon.enabled: are both false: nothing would be installed" }}
{{- end }}
{{- if and $scheduler.enabled $scheduler.page.enabled (not $scheduler.page.tokenSecret) }}
{{- fail "scheduler.page.tokenSecret: is empty: the page shows pods of every namespace to whoever reaches the Service: name a Secret whose key is token" }}
{{- end }}
{{- if $scheduler.enabled }}
{{- if $kube.enabled }}
{{- if le (int $kube.leaseSeconds) (int $kube.renewSeconds) }}
{{- fail (printf "scheduler.kubeScheduler.renewSeconds: %v: must be less than leaseSeconds, %v" $kube.renewSeconds $kube.leaseSeconds) }}
{{- end }}
{{- if le (int $kube.renewSeconds) (int $kube.retrySeconds) }}
{{- fail (printf "scheduler.kubeScheduler.retrySeconds: %v: must be less than renewSeconds, %v" $kube.retrySeconds $kube.renewSeconds) }}
{{- end }}
{{- if gt (int $scheduler.bindSeconds) (sub (int $kube.leaseSeconds) (int $kube.renewSeconds)) }}
{{- fail (printf "scheduler.bindSeconds: %v: must be at most leaseSeconds - renewSeconds of scheduler.kubeScheduler, %v" $scheduler.bindSeconds (sub (int $kube.leaseSeconds) (int $kube.renewSeconds))) }}
{{- end }}
{{- end }}
{{- if and (eq $certificate.from "files") (not (and $certificate.crt $certificate.key)) }}
{{- fail "certificate.from: files needs certificate.crt and certificate.key: 'allot-scheduler --issue DIR' makes both" }}
{{- end }}
{{- if and (eq $certificate.from "secret") (not $certificate.secretName) }}
{{- fail "certificate.from: secret needs certificate.secretName" }}
{{- end }}
{{- end }}
{{- end }}
