/*
 * Metrics under gpu-manager's names (github.com/tkestack/gpu-manager, pkg/services/display). For each container, every metric
 * has one sample for all the container's cards ("total"). Metrics of use also have one sample per card ("gpu0"). Utilization is
 * in percent, the requested GPU time in cards (0.3 for 30 %), memory in MiB.
 */
#include "daemon/export/metrics/row.h"

#define LABELS "pod_name, namespace, node, container_name, "
#define MIBS(field) METRIC_WHOLE, FIELD(metrics_tenant_device, field, uint64_t), "MiB"

const struct metric metrics_rows_gpu_manager[] = {
	{ "container_gpu_utilization", GAUGE, emit_gpu_manager_use, LABELS "gpu",
	  PERCENT(metrics_tenant_device, lessee.got_1s_pct),
	  "GPU time charged to the container in the last second, in percent of a device." },
	{ "container_gpu_memory_total", GAUGE, emit_gpu_manager_use, LABELS "gpu_memory",
	  MIBS(usage.used_bytes), "Memory that the container holds." },
	{ "container_request_gpu_utilization", GAUGE, emit_gpu_manager_asked, LABELS "req_of_gpu",
	  METRIC_PCT, FIELD(metrics_tenant_device, promise.cores_pct, double), "devices",
	  "The share that it asked for: 0.3 for 30 %." },
	{ "container_request_gpu_memory", GAUGE, emit_gpu_manager_asked, LABELS "req_of_gpu_memory",
	  MIBS(promise.quota_bytes), "Memory that it may hold." },
};
const size_t metrics_row_count_gpu_manager = sizeof(metrics_rows_gpu_manager) /
					     sizeof(metrics_rows_gpu_manager[0]);
