/* The part of a pod's request that stands in its annotations: which cards, and in which order. For request_read.c. */
#pragma once

#include "scheduler/request/request.h"

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
 * Fills of the request what concerns all its parts alike, and of *ret_place what each begins with. Texts are owned by the
 * request. -EINVAL with the annotation and what would be right; -ENOMEM.
 */
int request_read_wishes(const struct kube_pod *pod, const struct request_terms *terms,
			struct request *request, struct place_request *ret_place, struct error *err);
