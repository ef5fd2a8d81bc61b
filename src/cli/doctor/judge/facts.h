/* Facts about a machine. gather_*.c collect them; judge_*.c only turn them into findings, so a test can present any fault. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FACT_TEXT_MAX 256
#define FACT_NAME_MAX 64
#define FACT_NAMES_MAX 4096 /* all names of a certificate */
#define FACTS_MAX 16        /* most items in each list of facts; further ones are left out */

/* FACT_UNKNOWN: this program cannot find out. */
enum fact { FACT_UNKNOWN, FACT_NO, FACT_YES };

struct facts_cgroup {
	bool has_any; /* a cgroup file system is at /sys/fs/cgroup */
	bool is_read_only;
	enum fact may_write; /* this user may write a freezer's file */
};

struct facts_kubelet {
	bool is_there;        /* the kubelet's directory exists */
	bool plugin_wanted;   /* the settings have kube_plugin = on */
	enum fact answers;    /* a process listens at kubelet.sock */
	bool has_our_socket;  /* allot-*.sock exists beside kubelet.sock */
	enum fact we_answer;  /* a process listens at the allot-*.sock */
	enum fact registered; /* the kubelet's checkpoint lists `resource` */
	char resource[FACT_NAME_MAX];
	char version[FACT_NAME_MAX];
};

enum runtime { RUNTIME_CONTAINERD, RUNTIME_CRIO, RUNTIME_DOCKER, RUNTIME_PODMAN, RUNTIMES };
struct facts_runtime {
	bool is_there;
	char version[FACT_NAME_MAX]; /* "" if unknown */
	enum fact says_cdi; /* its settings turn CDI on; FACT_UNKNOWN if they say nothing */
};

struct facts_spec {
	char path[FACT_TEXT_MAX];
	bool is_ours;
	char fault[FACT_TEXT_MAX]; /* why the file is not a valid spec; "" if it is */
	/* a path that the spec mounts but the machine lacks; "" if none */
	char missing[FACT_TEXT_MAX];
	unsigned devices;
};

/* How containers get the driver and allot's library. */
struct facts_injection {
	bool is_simulated;
	bool has_toolkit;
	bool is_mirror; /* the setting container_driver names a directory */
	char mirror[FACT_TEXT_MAX];
	bool has_mirror_library;
	enum fact is_same_library; /* the mirror has the same liballot.so as this program */
	char mirror_driver[FACT_NAME_MAX], module[FACT_NAME_MAX]; /* versions; "" if unknown */
};

struct facts_certificate {
	char path[FACT_TEXT_MAX];
	char whose[FACT_NAME_MAX]; /* "metrics", "page" or "scheduler" */
	const char *setting; /* the setting that names the file, such as "web_tls_certificate" */
	char fault[FACT_TEXT_MAX];  /* why the certificate can't be read; "" if it can */
	int64_t from_s, until_s;    /* seconds since 1970 */
	char names[FACT_NAMES_MAX]; /* separated by spaces; "" if none */
	bool has_key;               /* the private key's file exists */
};

struct facts_clock {
	int64_t now_s;
	enum fact is_synced;
	bool has_step;
	double step_s; /* seconds by which the clock was set forward since the daemon started */
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
	/* running processes whose names judge_rivals.c lists */
	struct facts_process process[FACTS_MAX];
	unsigned count;
	bool has_hami_files; /* /usr/local/vgpu exists */
	bool has_mps_pipe;   /* the pipe of an MPS control daemon exists at the usual place */
};

struct facts_tenant {
	bool is_tenant; /* ALLOT_SOCKET is set */
	char socket[FACT_TEXT_MAX];
	char fault[FACT_TEXT_MAX]; /* why connecting to `socket` failed; "" if it did not */
	bool is_known;             /* the daemon named the tenant; `name` to `device` are valid */
	char name[FACT_NAME_MAX];
	bool is_paused;
	unsigned devices;
	struct facts_tenant_device {
		uint64_t quota_bytes, used_bytes;
		double cores_pct, limit_pct;
	} device[FACTS_MAX];
	bool is_preloaded;  /* liballot.so is mapped into this process */
	bool has_shim;      /* libcuda.so.1 is a shim that loads liballot.so (mirror/shim.h) */
	bool is_command;    /* LD_PRELOAD names liballot.so, as in a command of `allot run` */
	bool wants_control; /* CUDA_DISABLE_CONTROL (HAMi) is not set: the library is wanted */
};

struct facts_taint {
	char key[FACT_NAME_MAX], value[FACT_NAME_MAX], effect[FACT_NAME_MAX];
};

struct facts_cluster {
	bool is_asked; /* a kubeconfig or service account exists for asking the API server */
	char node[FACT_TEXT_MAX];
	char fault[FACT_TEXT_MAX]; /* why the Node object can't be read; "" if it was read */
	bool is_cordoned;
	struct facts_taint taint[FACTS_MAX];
	unsigned taints;
};

/* allot's DRA driver, and its objects in the API server. */
struct facts_dra {
	bool is_wanted; /* the settings have kube_dra = on, or the daemon reports the driver */
	enum fact has_socket; /* the driver's socket exists in the kubelet's plugins_registry */
	enum fact we_answer;  /* a process listens at that socket */
	bool is_known;        /* the daemon reports the driver; is_registered is valid */
	bool is_registered;   /* the kubelet has registered the driver */
	/* the API server was asked; each member *_fault is "" if this user may read the objects */
	bool is_asked;
	char slices_fault[FACT_TEXT_MAX], claims_fault[FACT_TEXT_MAX];
	bool has_api;        /* false: the API server said that it lacks resource.k8s.io/v1 */
	enum fact has_class; /* DeviceClass gpu.allot.dev exists */
	unsigned devices;    /* number of devices in this node's ResourceSlices */
	unsigned tainted;    /* number of these devices with a taint */
	bool is_shared;      /* several claims may share at least one of these devices */
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
