/*
 * Gathers the facts of judge/facts.h from a machine: one function for each subject, which fills in its part of the facts and
 * changes nothing on the machine. A fact that can't be found out stays FACT_UNKNOWN, "" or false. Not thread safe.
 */
#pragma once

#include <limits.h>

#include "cli/doctor/checks.h"
#include "cli/doctor/judge/facts.h"
#include "kube/client/api_access.h"

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

/* Helpers that several gather_*.c files use: */

#define ALLOTD_CONF "/etc/allot/allotd.conf"
#define SCHEDULER_CONF "/etc/allot/allot-scheduler.conf"

/* Reads the setting `key` from a file; the last line counts. If none sets it, writes `otherwise` and returns false. */
bool gather_setting(const struct host *host, const char *file, const char *key,
		    const char *otherwise, char ret[FACT_TEXT_MAX]);
/* Runs "<program> --version", for at most 5 s, and writes the first version number in its output; "" if none. */
void gather_program_version(const char *program, char ret[FACT_NAME_MAX]);
/* Returns the daemon's reply to "hello", which the caller frees; NULL if no daemon runs, or the host is another machine. */
json_t *gather_hello(struct doctor *doctor);
/* Finds the API server. Returns 1; 0 if there is none; -errno if credentials are not valid. Free *ret by access_free(). */
int gather_access(struct doctor *doctor, struct kube_access *ret, struct error *err);
/* Whether a process listens at a unix socket. FACT_UNKNOWN if this user may not connect, or `host` is another machine. */
enum fact gather_listens(const struct host *host, const char *path, int type);
/* Looks a 64-bit library up in the dynamic loader's cache, as the loader does. Returns false if the cache lacks it. */
bool gather_library(const struct host *host, const char *name, char ret_path[PATH_MAX]);
/* Writes the version of NVIDIA's kernel module; "" if it is not loaded. */
void gather_module_version(const struct host *host, char ret[FACT_NAME_MAX]);
