/* Metrics with the names and labels of HAMi's node monitor (HAMi, docs/metrics.md), for its dashboards. Ratios in percent. */
#include "daemon/export/metrics/row.h"

#define OF_HOST emit_hami_cards, "device_index, device_type, device_uuid"
#define OF_VGPU emit_hami_devices, "namespace, pod, container, vdevice_index, device_uuid"

const struct metric metrics_rows_hami[] = {
	{ "hami_host_gpu_memory_used_bytes", GAUGE, OF_HOST, BYTES(metrics_card, used_bytes),
	  "Held on the device by all processes; as allot_device_memory_used_bytes.",
	  IF(metrics_card, used_known) },
	{ "hami_host_gpu_utilization_ratio", GAUGE, OF_HOST,
	  PERCENT(metrics_card, arbitration.busy_pct),
	  "GPU time charged on the device in the last second, in percent." },
	{ "hami_vgpu_memory_used_bytes", GAUGE, OF_VGPU,
	  BYTES(metrics_tenant_device, usage.used_bytes),
	  "Memory that the container holds; as allot_tenant_memory_used_bytes." },
	{ "hami_vgpu_memory_limit_bytes", GAUGE, OF_VGPU,
	  BYTES(metrics_tenant_device, promise.quota_bytes),
	  "Memory that it may hold; as allot_tenant_memory_quota_bytes." },
	{ "hami_vgpu_memory_context_bytes", GAUGE, OF_VGPU,
	  BYTES(metrics_tenant_device, context_bytes),
	  "The part of its memory that CUDA contexts take." },
	{ "hami_vgpu_memory_module_bytes", GAUGE, OF_VGPU,
	  BYTES(metrics_tenant_device, usage.unnamed_bytes),
	  "The part of its memory that no call allocated: code, local memory." },
	{ "hami_vgpu_memory_buffer_bytes", GAUGE, OF_VGPU, BYTES(metrics_tenant_device, buffer_bytes),
	  "The part of its memory that calls allocated." },
	{ "hami_container_device_memory_bytes", GAUGE, OF_VGPU,
	  BYTES(metrics_tenant_device, usage.used_bytes),
	  "Memory that the container holds; as hami_vgpu_memory_used_bytes." },
	{ "hami_container_device_utilization_ratio", GAUGE, OF_VGPU,
	  PERCENT(metrics_tenant_device, lessee.got_1s_pct),
	  "GPU time charged to the container in the last second, in percent of the device." },
	{ "hami_container_last_kernel_elapsed_seconds", GAUGE, OF_VGPU,
	  SECONDS(metrics_tenant_device, rested_ns),
	  "How long ago it had work on the device, to a second; absent before its first.",
	  IF(metrics_tenant_device, has_worked) },
};
const size_t metrics_row_count_hami = sizeof(metrics_rows_hami) / sizeof(metrics_rows_hami[0]);
