#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/doctor/judge/judge.h"

#define DAY_S INT64_C(86400)
#define SOON_DAYS 14
#define STEP_MOST_S 60
#define BUILT_S INT64_C(1704067200) /* 2024; a clock that shows an earlier time was never set */

static void format_day(int64_t s, char text[16])
{
	struct tm tm;
	time_t time = (time_t)s;

	text[0] = '\0';
	if (gmtime_r(&time, &tm))
		strftime(text, 16, "%Y-%m-%d", &tm);
}

/* Whether one of the names is that of a Service. kube-apiserver calls allot-scheduler's webhook by such a name. */
static bool has_service_name(const char *names)
{
	for (const char *at = names; (at = strstr(at, ".svc")); at += 4)
		if (!at[4] || at[4] == ' ' || at[4] == '.')
			return true;
	return false;
}

static void judge_certificate(const struct facts_certificate *c, int64_t now_s, struct findings *f)
{
	char from[16], until[16];

	format_day(c->from_s, from);
	format_day(c->until_s, until);
	if (c->fault[0])
		finding_set_remedy(
			findings_add(f, FINDING_PROBLEM, "certificate",
				     "of the %s server, %s: %s: that server does not start",
				     c->whose, c->path, c->fault),
			"name a PEM file that the server can read, or set %s = none", c->setting);
	else if (!c->has_key)
		finding_set_remedy(
			findings_add(
				f, FINDING_PROBLEM, "certificate",
				"of the %s server, %s: the file of its private key does not exist",
				c->whose, c->path),
			"put both files there together, as in a Secret of type kubernetes.io/tls");
	else if (now_s >= c->until_s)
		finding_set_remedy(
			findings_add(f, FINDING_PROBLEM, "certificate",
				     "of the %s server, %s: expired on %s: clients refuse it",
				     c->whose, c->path, until),
			"renew it: the files are read again when they change, without a restart");
	else if (now_s < c->from_s)
		finding_set_remedy(findings_add(f, FINDING_PROBLEM, "certificate",
						"of the %s server, %s: is not valid before %s",
						c->whose, c->path, from),
				   "is this machine's clock right? (timedatectl)");
	else if (c->until_s - now_s < SOON_DAYS * DAY_S)
		finding_set_remedy(
			findings_add(f, FINDING_WARNING, "certificate",
				     "of the %s server, %s: expires on %s, in %" PRId64 " days",
				     c->whose, c->path, until, (c->until_s - now_s) / DAY_S),
			"renew it: the files are read again when they change, without a restart");
	else if (!c->names[0])
		finding_set_remedy(
			findings_add(
				f, FINDING_WARNING, "certificate",
				"of the %s server, %s: names no server (subjectAltName): clients refuse it",
				c->whose, c->path),
			"make one with the names that clients connect to");
	else if (!strcmp(c->whose, "scheduler") && !has_service_name(c->names))
		finding_set_remedy(
			findings_add(f, FINDING_WARNING, "certificate",
				     "of the scheduler server, %s: is for %.256s, "
				     "but kube-apiserver calls the webhook by the name of its Service",
				     c->path, c->names),
			"make one for allot-scheduler.NAMESPACE.svc (allot-scheduler --issue does)");
	else
		findings_add(f, FINDING_OK, "certificate", "of the %s: %.256s, until %s", c->whose,
			     c->names, until);
}

void judge_certificates(const struct facts *facts, struct findings *f)
{
	for (unsigned i = 0; i < facts->certificates; i++)
		judge_certificate(&facts->certificate[i], facts->clock.now_s, f);
}

void judge_clock(const struct facts *facts, struct findings *f)
{
	const struct facts_clock *c = &facts->clock;
	char now[16];

	format_day(c->now_s, now);
	if (c->now_s < BUILT_S)
		finding_set_remedy(
			findings_add(
				f, FINDING_PROBLEM, "clock",
				"shows %s: certificates look not yet valid, and a scheduler's timestamps look old",
				now),
			"set the clock: timedatectl set-ntp true");
	else if (c->has_step && (c->step_s > STEP_MOST_S || c->step_s < -STEP_MOST_S))
		finding_set_remedy(
			findings_add(
				f, FINDING_WARNING, "clock",
				"was set %s by %.0f s since the daemon started: pods being bound may look too old or too new",
				c->step_s > 0 ? "forward" : "back",
				c->step_s > 0 ? c->step_s : -c->step_s),
			"keep the clock synchronized; delete pods that hang while being bound. Shares and quotas are not affected");
	else if (c->is_synced == FACT_NO)
		finding_set_remedy(
			findings_add(
				f, FINDING_WARNING, "clock",
				"is not synchronized: it drifts from the cluster's clock, on which certificates and bindings depend"),
			"timedatectl set-ntp true, or run chrony; a single machine needs neither");
	else if (c->is_synced == FACT_YES)
		findings_add(f, FINDING_OK, "clock", "is synchronized");
}

void judge_versions(const struct facts *facts, struct findings *f)
{
	const struct facts_versions *v = &facts->versions;

	if (v->daemon_driver[0] && v->module[0] && !v->is_simulated) {
		if (strcmp(v->daemon_driver, v->module) != 0)
			finding_set_remedy(
				findings_add(
					f, FINDING_PROBLEM, "versions",
					"the daemon uses NVML of driver %s but the kernel module is %s: it cannot watch the GPUs",
					v->daemon_driver, v->module),
				"after a driver upgrade, run systemctl restart allotd; tenants go on");
		else
			findings_add(f, FINDING_OK, "versions",
				     "daemon and kernel module are of driver %s", v->module);
	}
}

static bool keeps_pods_off(const struct facts_taint *t)
{
	return strcmp(t->effect, "PreferNoSchedule") != 0;
}

/* Whether Kubernetes itself set the taint, because the node is faulty. */
static bool is_node_fault(const struct facts_taint *t)
{
	return !strncmp(t->key, "node.kubernetes.io/", strlen("node.kubernetes.io/"));
}

static void judge_taint(const struct facts_taint *t, struct findings *f)
{
	const char *equals = t->value[0] ? "=" : "";

	if (is_node_fault(t))
		finding_set_remedy(
			findings_add(f, FINDING_WARNING, "taint",
				     "%s:%s: Kubernetes itself keeps pods away from this node",
				     t->key, t->effect),
			"kubectl describe node shows the condition; the taint goes away with it");
	else if (keeps_pods_off(t))
		finding_set_remedy(
			findings_add(
				f, FINDING_NOTE, "taint",
				"%s%s%s:%s: only pods that tolerate this taint are placed here; that includes allotd's own pod",
				t->key, equals, t->value, t->effect),
			"set daemon.tolerations in the chart for allotd, and tolerations in the pods that may use these GPUs");
	else
		findings_add(
			f, FINDING_NOTE, "taint",
			"%s%s%s:%s: pods that do not tolerate this taint are placed on other nodes if possible",
			t->key, equals, t->value, t->effect);
}

void judge_cluster(const struct facts *facts, struct findings *f)
{
	const struct facts_cluster *c = &facts->cluster;

	if (!c->is_asked)
		return;
	if (c->fault[0]) {
		finding_set_remedy(
			findings_add(f, FINDING_WARNING, "node",
				     "reading node %s from the API server failed: %s", c->node,
				     c->fault),
			"check the settings kube_api and kube_node_name; taints were not checked");
		return;
	}
	if (c->is_cordoned)
		finding_set_remedy(findings_add(f, FINDING_WARNING, "node",
						"%s is cordoned: no new pods come here", c->node),
				   "kubectl uncordon %s, to allow pods again", c->node);
	else
		findings_add(f, FINDING_OK, "node", "%s takes pods", c->node);
	for (unsigned i = 0; i < c->taints; i++)
		judge_taint(&c->taint[i], f);
}
