/* Reads what a pod's annotations request: which cards it may have, and which it prefers. Internal to request_read.c. */
#pragma once

#include "scheduler/request/pod_request.h"

#define REQUEST_USE_TYPE "nvidia.com/use-gputype"
#define REQUEST_NOUSE_TYPE "nvidia.com/nouse-gputype"
#define REQUEST_USE_UUID "nvidia.com/use-gpuuuid"
#define REQUEST_NOUSE_UUID "nvidia.com/nouse-gpuuuid"
#define REQUEST_NUMA_BIND "nvidia.com/numa-bind"
#define REQUEST_MODE "nvidia.com/vgpu-mode"
#define REQUEST_GPU_POLICY "hami.io/gpu-scheduler-policy"
#define REQUEST_NODE_POLICY "hami.io/node-scheduler-policy"
#define REQUEST_WEIGHTS "hami.io/device-scoring-weights"

/*
 * Sets the request's fields that all parts share, and in *ret_place the initial value of each part. The request owns the
 * strings. Returns 0, -ENOMEM, or -EINVAL; err then names the annotation and what would be right.
 */
int request_read_annotations(const struct kube_pod *pod, const struct request_terms *terms,
			     struct request *request, struct place_request *ret_place,
			     struct error *err);
