/*
 * What `allot doctor` looks at: one function a subject, which adds a finding for each thing that it saw, good or bad.
 * None changes anything.
 */
#pragma once

#include "cli/daemon.h"
#include "cli/doctor/host.h"
#include "cli/doctor/judge/finding.h"

struct doctor {
	struct host host;
	struct daemon_target target;
	const char *kubeconfig, *node; /* NULL: as gather_cluster.c finds them */
	struct findings findings;
};

/* Linux, its namespaces and limits; cgroups. */
void doctor_check_system(struct doctor *doctor);
/* NVIDIA's kernel modules, device nodes and libraries, and whether they are of one version. */
void doctor_check_driver(struct doctor *doctor);
/* The device files of MIG instances; nothing where there are none. */
void doctor_check_mig(struct doctor *doctor);
/* liballot.so and the ways in which it, or somebody else's, comes into programs. */
void doctor_check_library(struct doctor *doctor);
/* The daemon that would serve, and whether it is of this version. */
void doctor_check_daemon(struct doctor *doctor);
/* Who else shares or hands out these GPUs: MPS, another device plugin; the kubelet. */
void doctor_check_others(struct doctor *doctor);
/* What has its facts apart from its judgement (rows.c): in a tenant, the node, engines, certificates, clock, cluster. */
void doctor_check_rows(struct doctor *doctor);
