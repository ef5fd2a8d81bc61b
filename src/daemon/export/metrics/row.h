/* Defines macros for the tables of metrics in metrics_rows.c, rows_hami.c and rows_gpu_manager.c. */
#pragma once

#include "daemon/export/metrics/metric.h"

/* A field's offset. Compiles only if the field has type `ctype`. */
#define FIELD(type, field, ctype) \
	(offsetof(struct type, field) + \
	 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((struct type *)NULL)->field), ctype) \
				 ? 1 \
				 : -1]))
#define COUNT(type, field) METRIC_WHOLE, FIELD(type, field, uint64_t), ""
#define BYTES(type, field) METRIC_WHOLE, FIELD(type, field, uint64_t), "bytes"
#define SECONDS(type, field) METRIC_NS, FIELD(type, field, uint64_t), "seconds"
#define RATIO(type, field) METRIC_PCT, FIELD(type, field, double), "ratio"
#define PERCENT(type, field) METRIC_REAL, FIELD(type, field, double), "percent"
#define REAL(type, field) METRIC_REAL, FIELD(type, field, double), ""
#define FLAG(type, field) METRIC_FLAG, FIELD(type, field, bool), "0 or 1"
#define OWN(unit) METRIC_OWN, 0, unit
#define IF(type, field) FIELD(type, field, bool)

#define GAUGE EXPOSITION_GAUGE
#define COUNTER EXPOSITION_COUNTER
