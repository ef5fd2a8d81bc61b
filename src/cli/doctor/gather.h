/*
 * Looks at a machine for facts.h: one function a subject, which fills its part of the facts and changes nothing. What can't
 * be told stays FACT_UNKNOWN or "". One thread.
 */
#pragma once

#include "cli/doctor/checks.h"
#include "cli/doctor/judge/facts.h"
#include "kube/client/access.h"

void gather_cgroup(struct doctor *doctor, struct facts *facts);
void gather_kubelet(struct doctor *doctor, struct facts *facts);
void gather_runtimes(struct doctor *doctor, struct facts *facts);
void gather_specs(struct doctor *doctor, struct facts *facts);
void gather_injection(struct doctor *doctor, struct facts *facts);
void gather_certificates(struct doctor *doctor, struct facts *facts);
void gather_clock(struct doctor *doctor, struct facts *facts);
void gather_versions(struct doctor *doctor, struct facts *facts);
void gather_cluster(struct doctor *doctor, struct facts *facts);
void gather_dra(struct doctor *doctor, struct facts *facts);
void gather_rivals(struct doctor *doctor, struct facts *facts);
void gather_tenant(struct doctor *doctor, struct facts *facts);

/* ---- shared by them ---- */

#define ALLOTD_CONF "/etc/allot/allotd.conf"
#define SCHEDULER_CONF "/etc/allot/allot-scheduler.conf"

/* A setting of a file, as its last line has it; `otherwise` where there is none. True: it is in the file. */
bool gather_setting(const struct host *host, const char *file, const char *key,
		    const char *otherwise, char ret[FACT_TEXT_MAX]);
/* The first version number that "<program> --version" says, a few seconds at most; "" where it says none. */
void gather_program_version(const char *program, char ret[FACT_NAME_MAX]);
/* How the API server is asked: 1; 0: there is no way. -errno with what is wrong with it. */
int gather_access(struct doctor *doctor, struct kube_access *ret, struct error *err);
/* Does somebody listen at that unix socket? FACT_UNKNOWN: this user may not ask, or it is of another machine. */
enum fact gather_listens(const struct host *host, const char *path, int type);
/* Of the kernel module; "": none is loaded. */
void gather_module_version(const struct host *host, char ret[FACT_NAME_MAX]);
