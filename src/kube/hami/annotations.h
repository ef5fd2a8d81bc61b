/*
 * Names of annotations in HAMi's protocol, as HAMi 2.8 and 2.10 write them. The file named beside an annotation reads and
 * writes its value.
 */
#pragma once

#define KUBE_NODE_REGISTER "hami.io/node-nvidia-register" /* cards.h */
#define KUBE_NODE_SCORE "hami.io/node-nvidia-score"       /* scores.h */
#define KUBE_NODE_HANDSHAKE "hami.io/node-handshake"      /* handshake.h */
#define KUBE_NODE_LOCK "hami.io/mutex.lock"               /* node_lock.h */
#define KUBE_NODE_CORDON "hami.io/device-cordon"          /* cordon.h */
/* added by allot to HAMi's protocol */
#define KUBE_NODE_USE "allot.dev/node-use"        /* kube/own/node_cards.h */
#define KUBE_NODE_COOLDOWNS "allot.dev/node-shut" /* kube/own/node_cards.h */

/* Annotations of a pod, which a scheduler or allotd writes; pod.h and shares.h read them. */
#define KUBE_POD_NODE "hami.io/vgpu-node"
#define KUBE_POD_TIME "hami.io/vgpu-time" /* when the node was chosen, in seconds since 1970 */
#define KUBE_POD_BIND_TIME "hami.io/bind-time"
#define KUBE_POD_BIND_PHASE "hami.io/bind-phase"
#define KUBE_POD_TO_ALLOCATE "hami.io/vgpu-devices-to-allocate"
#define KUBE_POD_ALLOCATED "hami.io/vgpu-devices-allocated"

#define KUBE_LIVE_DOMAIN "allot.dev"
/* Pod annotations of allot's own, after "allot.dev/". The user writes them unless noted. */
#define KUBE_WORKLOAD "workload" /* training or inference: scheduler/webhook/webhook_workload.c */
/* The webhook refuses these two. Nodes ignore them, since running pods may have them from an earlier version. */
#define KUBE_DURATION "duration"
#define KUBE_CONCURRENCY "concurrency"
/* "use" or "guarantee": the scheduler places the pod by measured use or by guaranteed cores (opportunistic.h) */
#define KUBE_PLACEMENT "placement"
/*
 * Written by the scheduler on a pod placed by measured use: shares as in KUBE_POD_ALLOCATED, but with the cores that the pod
 * requested. KUBE_POD_ALLOCATED has 0 cores, because the pod has no guarantee.
 */
#define KUBE_BORROWED "borrowed"
/* name of the gang, whose pods are placed together: scheduler/gang/gang_read.h */
#define KUBE_GANG "gang"
#define KUBE_GANG_SIZE "gang-size"
/* Written by allot-scheduler on a waiting pod: the time when room may have appeared. The change makes schedulers retry. */
#define KUBE_ROOM_SINCE "room-since"

/* Size of a GPU's id with its NUL; fits a MIG instance's UUID, the longest. */
#define KUBE_ID_MAX 96
