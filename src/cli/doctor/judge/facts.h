/*
 * What `allot doctor` has seen of a machine, apart from what it means: gather_*.c look, judge_*.c judge. A judge is given
 * facts and adds findings; it looks at nothing itself, so that every fault can be put before it in a test.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FACT_TEXT_MAX 256
#define FACT_NAME_MAX 64
#define FACTS_MAX 16 /* of a kind: what is beyond is left out */

/* Yes, no, or it can't be told from here. */
enum fact { FACT_UNKNOWN, FACT_NO, FACT_YES };

struct facts_cgroup {
	bool has_any;        /* a cgroup file system is at /sys/fs/cgroup */
	bool is_read_only;   /* ... mounted so */
	enum fact may_write; /* this user may write a freezer's file */
};

struct facts_kubelet {
	bool is_there;        /* it has its directory */
	bool plugin_wanted;   /* kube_plugin = on, in the settings */
	enum fact answers;    /* somebody listens at kubelet.sock */
	bool has_our_socket;  /* allot-*.sock beside it ... */
	enum fact we_answer;  /* ... and somebody listens there */
	enum fact registered; /* the kubelet's checkpoint has the resource */
	char resource[FACT_NAME_MAX];
	char version[FACT_NAME_MAX]; /* "": not told */
};

enum runtime { RUNTIME_CONTAINERD, RUNTIME_CRIO, RUNTIME_DOCKER, RUNTIME_PODMAN, RUNTIMES };
struct facts_runtime {
	bool is_there;
	char version[FACT_NAME_MAX]; /* "": not told */
	enum fact says_cdi;          /* its settings: on, off; or nothing */
};

struct facts_spec {
	char path[FACT_TEXT_MAX];
	bool is_ours;
	char fault[FACT_TEXT_MAX]; /* why it is no spec; "": it is one */
	char missing[FACT_TEXT_MAX]; /* a path of the machine that it mounts and that is not there; "": none */
	unsigned devices;
};

/* Ways in which the driver and the library come into containers. */
struct facts_injection {
	bool is_simulated; /* no driver is needed */
	bool has_toolkit;  /* NVIDIA's container toolkit */
	bool is_mirror;    /* container_driver names a directory */
	char mirror[FACT_TEXT_MAX];
	bool has_mirror_library;
	enum fact is_same_library; /* the mirror's is the one beside this program */
	char mirror_driver[FACT_NAME_MAX], module[FACT_NAME_MAX]; /* versions; "": not told */
};

struct facts_certificate {
	char path[FACT_TEXT_MAX];
	char whose[FACT_NAME_MAX]; /* "metrics", "page", "scheduler" */
	char fault[FACT_TEXT_MAX]; /* why it can't be read; "": it was */
	int64_t from_s, until_s;   /* since 1970 */
	char names[FACT_TEXT_MAX]; /* by spaces; "": none */
	bool has_key;              /* its key's file is there */
};

struct facts_clock {
	int64_t now_s;
	enum fact is_synced;
	bool has_step;
	double step_s; /* what it was set by since the daemon started */
};

struct facts_versions {
	char daemon_driver[FACT_NAME_MAX], module[FACT_NAME_MAX];
	bool is_simulated;
};

struct facts_process {
	char name[FACT_NAME_MAX];
	int pid;
};

struct facts_rivals {
	struct facts_process process[FACTS_MAX]; /* those of the table of judge_rivals.c, by name */
	unsigned count;
	bool has_hami_files; /* /usr/local/vgpu */
	bool has_mps_pipe;   /* a control daemon's pipe, at the usual place */
};

struct facts_tenant {
	bool is_tenant; /* ALLOT_SOCKET is set */
	char socket[FACT_TEXT_MAX];
	char fault[FACT_TEXT_MAX]; /* why it does not answer; "": it does */
	bool is_told;              /* it told of itself: */
	char name[FACT_NAME_MAX];
	bool is_paused;
	unsigned devices;
	struct facts_tenant_device {
		uint64_t quota_bytes, used_bytes;
		double cores_pct, limit_pct;
	} device[FACTS_MAX];
	bool is_preloaded;  /* liballot.so is mapped here */
	bool has_shim;      /* the loader's libcuda.so.1 is a shim: a mirror */
	bool is_command;    /* LD_PRELOAD names it: of allot run */
	bool wants_control; /* CUDA_DISABLE_CONTROL is not set */
};

struct facts_taint {
	char key[FACT_NAME_MAX], value[FACT_NAME_MAX], effect[FACT_NAME_MAX];
};

struct facts_cluster {
	bool is_asked; /* there is a way to ask */
	char node[FACT_TEXT_MAX];
	char fault[FACT_TEXT_MAX]; /* why it was not answered; "": it was */
	bool is_cordoned;
	struct facts_taint taint[FACTS_MAX];
	unsigned taints;
};

/* The DRA driver, and what the API server has of it. */
struct facts_dra {
	bool is_wanted;       /* kube_dra = on, in the settings, or the daemon says so */
	enum fact has_socket; /* below the kubelet's plugins_registry ... */
	enum fact we_answer;  /* ... and somebody listens there */
	bool is_told;         /* the daemon told of it: */
	bool is_registered;   /* the kubelet has registered it */
	bool is_asked; /* the API server was asked; each of these is "" where it may be read: */
	char slices_fault[FACT_TEXT_MAX], claims_fault[FACT_TEXT_MAX];
	bool has_api;        /* it knows resource.k8s.io/v1 */
	enum fact has_class; /* DeviceClass gpu.allot.dev */
	unsigned devices;    /* in this node's slice */
	unsigned tainted;    /* of these */
	bool is_shared;      /* several claims may have one */
};

struct facts {
	struct facts_cgroup cgroup;
	struct facts_kubelet kubelet;
	struct facts_runtime runtime[RUNTIMES];
	struct facts_spec spec[FACTS_MAX];
	unsigned specs;
	struct facts_injection injection;
	struct facts_certificate certificate[FACTS_MAX];
	unsigned certificates;
	struct facts_clock clock;
	struct facts_versions versions;
	struct facts_rivals rivals;
	struct facts_tenant tenant;
	struct facts_cluster cluster;
	struct facts_dra dra;
};
