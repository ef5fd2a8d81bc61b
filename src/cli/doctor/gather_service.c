/* Certificates of the settings, the clock, versions. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/client.h"
#include "cli/daemon.h"
#include "cli/doctor/certificate.h"
#include "cli/doctor/gather.h"

/* ---- certificates ---- */

static const struct {
	const char *file, *certificate, *key, *whose;
} settings[] = {
	{ ALLOTD_CONF, "metrics_tls_certificate", "metrics_tls_key", "metrics" },
	{ ALLOTD_CONF, "web_tls_certificate", "web_tls_key", "page" },
	{ SCHEDULER_CONF, "tls_certificate", "tls_key", "scheduler" },
};

void gather_certificates(struct doctor *d, struct facts *facts)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		struct facts_certificate *c = &facts->certificate[facts->certificates];
		char key[FACT_TEXT_MAX];
		struct error err;
		size_t size;

		gather_setting(&d->host, settings[i].file, settings[i].certificate, "none", c->path);
		if (c->path[0] != '/')
			continue;
		facts->certificates++;
		snprintf(c->whose, sizeof(c->whose), "%s", settings[i].whose);
		gather_setting(&d->host, settings[i].file, settings[i].key, "none", key);
		c->has_key = key[0] == '/' && host_has(&d->host, key);
		cleanup_free char *text = host_read_all(&d->host, c->path, &size);
		if (!text)
			snprintf(c->fault, sizeof(c->fault), "%s",
				 host_has(&d->host, c->path) ? "may not be read by this user"
							     : "is not there");
		else if (certificate_read(text, size, &c->from_s, &c->until_s, c->names,
					  sizeof(c->names), &err) < 0)
			snprintf(c->fault, sizeof(c->fault), "%.*s", FACT_TEXT_MAX - 1, err.text);
	}
}

/* ---- the clock ---- */

/* When a process was started, by this moment's clock; -1: it is gone. */
static double started_s(int pid)
{
	char path[64], text[1024];
	struct timespec now, since_boot;
	unsigned long long ticks = 0;
	struct host here = { .root = "" };

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (host_read(&here, path, text, sizeof(text)) <= 0)
		return -1;
	const char *behind_name = strrchr(text, ')');
	if (!behind_name ||
	    sscanf(behind_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &ticks) != 1)
		return -1;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &since_boot);
	return (double)(now.tv_sec - since_boot.tv_sec) +
	       (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/*
 * The daemon makes its socket when it starts, and the file system notes the time of then: what both differ by is what
 * the clock was set by since.
 */
static void look_for_a_step(struct doctor *d, struct facts_clock *clock)
{
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *hello = NULL;
	char path[PATH_MAX];
	struct stat st;

	if (daemon_find(&d->target, &client, NULL) < 0 ||
	    client_request(client, "hello", NULL, &hello, NULL) < 0)
		return;
	snprintf(path, sizeof(path), "%s/allotd.sock", client_run_dir(client));
	double start_s = started_s((int)json_integer_value(json_object_get(hello, "pid")));
	if (start_s < 0 || stat(path, &st) < 0)
		return;
	clock->has_step = true;
	clock->step_s = start_s - (double)st.st_mtim.tv_sec;
}

void gather_clock(struct doctor *d, struct facts *facts)
{
	struct timex timex = { 0 };
	struct facts_clock *c = &facts->clock;

	c->now_s = time(NULL);
	if (!host_is_here(&d->host))
		return;
	int r = adjtimex(&timex);
	if (r >= 0)
		c->is_synced = r == TIME_ERROR || (timex.status & STA_UNSYNC) ? FACT_NO : FACT_YES;
	look_for_a_step(d, c);
}

/* ---- versions ---- */

void gather_versions(struct doctor *d, struct facts *facts)
{
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *hello = NULL;
	struct facts_versions *v = &facts->versions;

	gather_module_version(&d->host, v->module);
	if (!host_is_here(&d->host) || daemon_find(&d->target, &client, NULL) < 0 ||
	    client_request(client, "hello", NULL, &hello, NULL) < 0)
		return;
	const char *driver = json_string_value(json_object_get(hello, "driver"));
	v->is_simulated = json_is_true(json_object_get(hello, "simulated"));
	snprintf(v->daemon_driver, sizeof(v->daemon_driver), "%.*s", FACT_NAME_MAX - 1,
		 driver ? driver : "");
}
