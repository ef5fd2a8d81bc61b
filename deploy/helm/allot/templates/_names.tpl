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

{{/* The DNS names in the scheduler's certificate. */}}
{{- define "allot.hosts" -}}
{{- $name := include "allot.scheduler" . -}}
{{- $hosts := list -}}
{{- range list $name (printf "%s-leader" $name) }}
{{- $hosts = concat $hosts (list (printf "%s.%s.svc" . $.Release.Namespace) (printf "%s.%s" . $.Release.Namespace)) }}
{{- end }}
{{- toJson $hosts }}
{{- end }}
