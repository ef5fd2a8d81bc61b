/* Functions that turn the facts about a machine into findings, good or bad. No I/O and no clock; thread safe. */
#pragma once

#include "cli/doctor/judge/facts.h"
#include "cli/doctor/judge/finding.h"

typedef void (*judge)(const struct facts *facts, struct findings *findings);

/* judge_node.c */
void judge_cgroup_rights(const struct facts *facts, struct findings *findings);
void judge_kubelet(const struct facts *facts, struct findings *findings);
void judge_runtimes(const struct facts *facts, struct findings *findings);
void judge_specs(const struct facts *facts, struct findings *findings);
void judge_injection(const struct facts *facts, struct findings *findings);
/* judge_service.c */
void judge_certificates(const struct facts *facts, struct findings *findings);
void judge_clock(const struct facts *facts, struct findings *findings);
void judge_versions(const struct facts *facts, struct findings *findings);
void judge_cluster(const struct facts *facts, struct findings *findings);
void judge_dra(const struct facts *facts, struct findings *findings);
/* judge_rivals.c */
void judge_rivals(const struct facts *facts, struct findings *findings);
void judge_tenant(const struct facts *facts, struct findings *findings);

/* Whether judge_rivals() knows the process's name (from /proc/<pid>/comm). */
bool judge_is_rival_process(const char *name);
