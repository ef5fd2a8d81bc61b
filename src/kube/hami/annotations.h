/*
 * The names of HAMi's protocol on nodes and pods, as its v2.8 and v2.10 write them. What stands behind
 * each name has a file of its own here.
 */
#pragma once

/* On a node. */
#define KUBE_NODE_REGISTER "hami.io/node-nvidia-register" /* cards.h */
#define KUBE_NODE_SCORE "hami.io/node-nvidia-score"       /* scores.h */
#define KUBE_NODE_HANDSHAKE "hami.io/node-handshake"      /* handshake.h */
#define KUBE_NODE_LOCK "hami.io/mutex.lock"               /* node_lock.h */
#define KUBE_NODE_CORDON "hami.io/device-cordon"          /* cordon.h */
/* allot's own. */
#define KUBE_NODE_USE "allot.dev/node-use"        /* uses.h */
#define KUBE_NODE_COOLDOWNS "allot.dev/node-shut" /* cooldowns.h */

/* On a pod, written by the system: pod.h, shares.h. */
#define KUBE_POD_NODE "hami.io/vgpu-node"
#define KUBE_POD_TIME "hami.io/vgpu-time" /* when the node was chosen, in seconds since 1970 */
#define KUBE_POD_BIND_TIME "hami.io/bind-time"
#define KUBE_POD_BIND_PHASE "hami.io/bind-phase"
#define KUBE_POD_TO_ALLOCATE "hami.io/vgpu-devices-to-allocate"
#define KUBE_POD_ALLOCATED "hami.io/vgpu-devices-allocated"

#define KUBE_LIVE_DOMAIN "allot.dev"
/* On a pod, written by the user: what follows KUBE_LIVE_DOMAIN and '/' in allot's own. */
#define KUBE_WORKLOAD "workload" /* training or inference: scheduler/webhook/webhook_workload.c */
#define KUBE_DURATION "duration" /* how long it will take, as it is estimated: 2h */
#define KUBE_CONCURRENCY "concurrency" /* how many requests it will serve at a time */
#define KUBE_PLACEMENT \
	"placement" /* use or guarantee: by what its cores are placed: scheduler/opportunistic/opportunistic.h */
/*
 * On a pod that was placed by use, written by the scheduler: its shares as in KUBE_POD_ALLOCATED, but with the cores that
 * it asked for. There they are 0, as nothing of a card's time is promised to it.
 */
#define KUBE_BORROWED "borrowed"
#define KUBE_GANG "gang"           /* whose pods are placed together: scheduler/gang/gang_read.h */
#define KUBE_GANG_SIZE "gang-size" /* how many that are */
/* On a pod that waits, written by allot-scheduler: since when there may be room, so that it is tried again. */
#define KUBE_ROOM_SINCE "room-since"

/* What a card's, or a share's, id has room for, its NUL included: the longest UUID of MIG and more. */
#define KUBE_ID_MAX 96
