{{/* A dict of settings as lines of a file: true and false become on and off; null leaves a setting out. */}}
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

{{/* "true" if place_by_use is on. */}}
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
{{- if $daemon.volumeConfig }}
{{- $_ := set $own "container_driver" (include "allot.driverDir" .) }}
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

{{/* The mirror of daemon.volumeConfig. Each image and list has a directory of its own, because containers keep the old one. */}}
{{- define "allot.driverDir" -}}
/var/lib/allot/driver-{{ printf "%s\n%s" (include "allot.image" .) .Values.daemon.volumeConfig | sha256sum | trunc 12 }}
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
{{- if .Values.webhook.strict }}
{{- range $name, $value := dict "guard_environment" "deny" "guard_mounts" "deny" "guard_privileged" "deny" "guard_others" true "pod_opt_out" false }}
{{- if not (hasKey $scheduler.settings $name) }}
{{- $_ := set $own $name $value }}
{{- end }}
{{- end }}
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
The resources about which kube-scheduler asks its extender, under the names in the settings. kube-scheduler itself counts
gpu-manager's units, as the kubelet does, so it sees when pods that end make room. It does not count HAMi's nvidia.com/gpu, a
number that says nothing about memory. If kube-scheduler counted one resource of a pod that asks for several, it could
overlook for minutes that a new node has room.
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

{{/* Labels by which a namespace, and without webhook.strict a pod, is kept from the webhook. */}}
{{- define "allot.optOut" -}}
- { key: allot.dev/webhook, operator: NotIn, values: [ignore] }
- { key: hami.io/webhook, operator: NotIn, values: [ignore] }
{{- end }}

{{/* Selects the pods that the webhook completes and checks. */}}
{{- define "allot.seenPods" -}}
{{- if not .Values.webhook.strict }}
objectSelector:
  matchExpressions: {{- include "allot.optOut" . | nindent 4 }}
{{- end }}
{{- end }}

{{/* CEL: whether the pod, new or to be changed, requests a GPU or a part of one. */}}
{{- define "allot.asksForGpus" -}}
{{- $resources := list }}
{{- range list "gpu" "gpumem" "gpumem-percentage" "gpucores" }}
{{- $setting := get (dict "gpu" "gpu_resource" "gpumem" "memory_resource" "gpumem-percentage" "memory_percent_resource" "gpucores" "cores_resource") . }}
{{- $resources = append $resources (get $.Values.scheduler.settings $setting | default (printf "nvidia.com/%s" .)) }}
{{- end }}
{{- range list "core" "memory" }}
{{- $resources = append $resources (get $.Values.scheduler.settings (printf "vcuda_%s_resource" .) | default (printf "tencent.com/vcuda-%s" .)) }}
{{- end -}}
(object.spec.containers + object.spec.?initContainers.orValue([])).exists(container,
{{ toJson $resources }}.exists(name,
string(container.?resources.?limits[?name].orValue("0")) != "0" ||
string(container.?resources.?requests[?name].orValue("0")) != "0"))
{{- end }}

{{- define "allot.seenNamespaces" -}}
{{ include "allot.optOut" . }}
{{- with .Values.webhook.skipNamespaces }}
- { key: kubernetes.io/metadata.name, operator: NotIn, values: {{ toJson . }} }
{{- end }}
{{- end }}

{{/* Checks values that depend on each other, for all templates. */}}
{{- define "allot.check" -}}
{{- $scheduler := .Values.scheduler -}}
{{- $kube := $scheduler.kubeScheduler -}}
{{- $certificate := .Values.certificate -}}
{{- if and $scheduler.enabled (eq .Values.vocabulary "slices") }}
{{- fail "vocabulary: slices needs no scheduler: set scheduler.enabled to false, or vocabulary to hami or gpu-manager" }}
{{- end }}
{{- if not (or .Values.daemon.devicePlugin .Values.dra.enabled) }}
{{- fail "daemon.devicePlugin and dra.enabled: are both false: nodes would offer pods no GPUs" }}
{{- end }}
{{- if and .Values.daemon.volumeConfig (hasKey .Values.daemon.settings "container_driver") }}
{{- fail "daemon.volumeConfig: sets container_driver itself: remove daemon.settings.container_driver" }}
{{- end }}
{{- if and .Values.dra.enabled (not .Values.daemon.enabled) }}
{{- fail "dra.enabled: needs daemon.enabled: allotd is the driver" }}
{{- end }}
{{- if and .Values.dra.enabled (semverCompare "<1.34-0" .Capabilities.KubeVersion.Version) }}
{{- fail "dra.enabled: needs Kubernetes 1.34 or newer" }}
{{- end }}
{{- if and .Values.dra.extendedResourceName .Values.daemon.devicePlugin (eq .Values.dra.extendedResourceName (.Values.daemon.settings.kube_resource | default "nvidia.com/gpu")) }}
{{- fail (printf "dra.extendedResourceName: %s: is also the device plugin's resource: choose another name, or set daemon.devicePlugin and scheduler.enabled to false" .Values.dra.extendedResourceName) }}
{{- end }}
{{- if and .Values.dra.convert (not (and .Values.dra.enabled $scheduler.enabled .Values.webhook.enabled)) }}
{{- fail "dra.convert: needs dra.enabled, scheduler.enabled and webhook.enabled: the webhook turns limits into claims of the driver" }}
{{- end }}
{{- if and .Values.dra.convert $kube.enabled }}
{{- fail "dra.convert: the cluster's own kube-scheduler places claims: set scheduler.kubeScheduler.enabled to false" }}
{{- end }}
{{- if and $scheduler.enabled (not .Values.daemon.devicePlugin) (not .Values.dra.convert) }}
{{- fail "daemon.devicePlugin: false needs no scheduler: set scheduler.enabled to false, because the cluster's own scheduler places claims; or set dra.convert to true" }}
{{- end }}
{{- if and .Values.webhook.strict (semverCompare "<1.30-0" .Capabilities.KubeVersion.Version) }}
{{- fail "webhook.strict: needs Kubernetes 1.30 or newer" }}
{{- end }}
{{- if and .Values.test.claim (not .Values.dra.enabled) }}
{{- fail "test.claim: needs dra.enabled" }}
{{- end }}
{{- if not (or $scheduler.enabled .Values.daemon.enabled) }}
{{- fail "scheduler.enabled and daemon.enabled: are both false: nothing would be installed" }}
{{- end }}
{{- if and $scheduler.enabled $scheduler.page.enabled (not $scheduler.page.tokenSecret) }}
{{- fail "scheduler.page.tokenSecret: is empty: the page would show pods of every namespace to every client that reaches the Service: name a Secret with the key token" }}
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
