/* The checks that gather facts and judge them in separate functions, in the order of the report. */
#include <stdlib.h>

#include "cli/doctor/checks.h"
#include "cli/doctor/gather.h"
#include "cli/doctor/judge/judge.h"

static const struct {
	void (*gather)(struct doctor *doctor, struct facts *facts);
	judge judge;
} rows[] = {
	{ gather_tenant, judge_tenant },       { gather_cgroup, judge_cgroup_rights },
	{ gather_rivals, judge_rivals },       { gather_kubelet, judge_kubelet },
	{ gather_runtimes, judge_runtimes },   { gather_specs, judge_specs },
	{ gather_injection, judge_injection }, { gather_versions, judge_versions },
	{ gather_clock, judge_clock },         { gather_certificates, judge_certificates },
	{ gather_cluster, judge_cluster },     { gather_dra, judge_dra },
};

void doctor_check_rows(struct doctor *d)
{
	struct facts *facts = calloc(1, sizeof(*facts));

	for (size_t i = 0; facts && i < sizeof(rows) / sizeof(*rows); i++) {
		rows[i].gather(d, facts);
		rows[i].judge(facts, &d->findings);
	}
	if (!facts)
		findings_add(&d->findings, FINDING_PROBLEM, "memory",
			     "out of memory: the remaining checks were not made");
	free(facts);
}
