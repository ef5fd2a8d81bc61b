{{/* Names and labels. */}}
{{- define "allot.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "allot.fullname" -}}
{{- $name := include "allot.name" . }}
{{- $whole := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $whole .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "allot.daemon" -}}
{{ include "allot.fullname" . }}d
{{- end }}

{{- define "allot.scheduler" -}}
{{ include "allot.fullname" . }}-scheduler
{{- end }}

{{/* The labels of an object of one component: {{ include "allot.labels" (list . "allotd") }}. */}}
{{- define "allot.labels" -}}
{{- $root := index . 0 -}}
{{ include "allot.selector" . }}
app.kubernetes.io/part-of: allot
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end }}

{{- define "allot.selector" -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end }}

{{- define "allot.image" -}}
{{- $image := .Values.image -}}
{{ $image.repository }}{{ $image.digest | empty | ternary (printf ":%s" (default .Chart.AppVersion $image.tag)) (printf "@%s" $image.digest) }}
{{- end }}

{{- define "allot.kubeSchedulerImage" -}}
{{- include "allot.kubernetesImage" (list . .Values.scheduler.kubeScheduler.image) -}}
{{- end }}

{{- define "allot.kubectlImage" -}}
{{- include "allot.kubernetesImage" (list . .Values.uninstall.image) -}}
{{- end }}

{{/* Of (list . image): the tag is by default the cluster's version, without a vendor's suffix. */}}
{{- define "allot.kubernetesImage" -}}
{{- $image := index . 1 -}}
{{- $version := (index . 0).Capabilities.KubeVersion.Version | regexFind "^v?[0-9]+\\.[0-9]+\\.[0-9]+" -}}
{{ $image.repository }}:{{ default $version $image.tag }}
{{- end }}

{{/* What the pod of "helm test" asks for, as JSON: {"claim": ...}, {"limits": ...}, or {} for a simulated GPU. */}}
{{- define "allot.testRequest" -}}
{{- $test := .Values.test }}
{{- $gpu := default "auto" $test.gpu }}
{{- $settings := .Values.daemon.settings }}
{{- $isReal := or (eq $gpu "real") (not (empty $test.limits)) (not (empty $test.claim)) }}
{{- if and (not $isReal) (eq $gpu "auto") .Values.daemon.enabled }}
{{- range (lookup "v1" "Node" "" "").items }}
{{- $labels := default dict .metadata.labels }}
{{- $isSelected := true }}
{{- range $key, $value := $.Values.daemon.nodeSelector }}
{{- if ne (get $labels $key) $value }}{{ $isSelected = false }}{{ end }}
{{- end }}
{{- $isReal = or $isReal $isSelected }}
{{- end }}
{{- end }}
{{- $request := dict }}
{{- if or (eq $gpu "simulated") (not $isReal) }}
{{- else if $test.claim }}
{{- $request = dict "claim" $test.claim }}
{{- else if $test.limits }}
{{- $request = dict "limits" $test.limits }}
{{- else if not (or .Values.daemon.devicePlugin .Values.dra.convert) }}
{{- $request = dict "claim" (dict "memory" "4Gi" "cores" "10") }}
{{- else if eq .Values.vocabulary "gpu-manager" }}
{{- $request = dict "limits" (dict (default "tencent.com/vcuda-core" $settings.kube_core_resource) 10 (default "tencent.com/vcuda-memory" $settings.kube_memory_resource) 16) }}
{{- else if eq .Values.vocabulary "slices" }}
{{- $request = dict "limits" (dict (default "nvidia.com/gpu" $settings.kube_resource) 1) }}
{{- else }}
{{- $names := .Values.scheduler.settings }}
{{- $request = dict "limits" (dict (default "nvidia.com/gpu" $names.gpu_resource) 1 (default "nvidia.com/gpumem" $names.memory_resource) 4096 (default "nvidia.com/gpucores" $names.cores_resource) 10) }}
{{- end }}
{{- toJson $request }}
{{- end }}

{{/* The DNS names in the scheduler's certificate. */}}
{{- define "allot.hosts" -}}
{{- $name := include "allot.scheduler" . -}}
{{- $hosts := list -}}
{{- range list $name (printf "%s-leader" $name) }}
{{- $hosts = concat $hosts (list (printf "%s.%s.svc" . $.Release.Namespace) (printf "%s.%s" . $.Release.Namespace)) }}
{{- end }}
{{- toJson $hosts }}
{{- end }}
