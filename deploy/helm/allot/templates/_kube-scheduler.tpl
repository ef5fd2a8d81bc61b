{{- define "allot.extender" -}}
filterVerb: filter
prioritizeVerb: prioritize
preemptVerb: preempt
bindVerb: bind
weight: 1
nodeCacheCapable: true
# Longer than a binding with its wait for the gang, so that allot-scheduler itself reports why a binding failed.
httpTimeout: {{ add (int .Values.scheduler.gangSeconds) (int .Values.scheduler.bindSeconds) 2 }}s
managedResources:
  {{- include "allot.managedResources" . | trim | nindent 2 }}
{{- end }}

{{- define "allot.kubeSchedulerConfiguration" -}}
{{- $kube := .Values.scheduler.kubeScheduler -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceLock: leases
  resourceName: {{ include "allot.scheduler" . }}
  resourceNamespace: {{ .Release.Namespace }}
  leaseDuration: {{ $kube.leaseSeconds }}s
  renewDeadline: {{ $kube.renewSeconds }}s
  retryPeriod: {{ $kube.retrySeconds }}s
profiles:
  - schedulerName: {{ include "allot.schedulerName" . }}
    percentageOfNodesToScore: {{ $kube.nodesToScorePercent }}
extenders:
  - urlPrefix: http://127.0.0.1:9398
    {{- include "allot.extender" . | nindent 4 }}
{{- end }}
