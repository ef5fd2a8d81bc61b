/* The checks of `allot doctor`. Each adds a finding, good or bad, for each thing that it examined. None changes anything. */
#pragma once

#include "cli/daemon.h"
#include "cli/doctor/host.h"
#include "cli/doctor/judge/finding.h"

struct doctor {
	struct host host;
	struct daemon_target target;
	/* --kubeconfig and --node; if NULL, gather_cluster.c finds the values */
	const char *kubeconfig, *node;
	struct findings findings;
};

/* Whether no driver is needed: --sim asks for a simulated GPU, or this program runs in a tenant that has one. */
bool doctor_is_simulated(const struct doctor *doctor);

/* Checks Linux, its namespaces and limits, and cgroups. */
void doctor_check_system(struct doctor *doctor);
/* Checks NVIDIA's kernel modules, device nodes and libraries, and whether they have the same version. */
void doctor_check_driver(struct doctor *doctor);
/* Checks the device files of MIG instances; adds nothing if there are none. */
void doctor_check_mig(struct doctor *doctor);
/* Checks liballot.so, and what is preloaded into programs. */
void doctor_check_library(struct doctor *doctor);
/* Checks the daemon that `allot` would use, and whether it has the same version as this program. */
void doctor_check_daemon(struct doctor *doctor);
/* Checks what else shares or hands out this machine's GPUs (MPS, another device plugin), and the kubelet. */
void doctor_check_others(struct doctor *doctor);
/* Runs the checks in rows.c. Each has a function that gathers facts (gather.h) and one that judges them (judge/judge.h). */
void doctor_check_rows(struct doctor *doctor);
