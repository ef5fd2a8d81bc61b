#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/symbols.h"
#include "cli/daemon.h"
#include "cli/doctor/gather.h"
#include "client/client.h"

/* GnuTLS is loaded only to read certificates, because `allot` is started often and seldom needs it. */

#define LIBRARY "libgnutls.so.30"

#define FUNCTIONS(X) \
	X(x509_crt_init) \
	X(x509_crt_deinit) \
	X(x509_crt_import) \
	X(x509_crt_get_activation_time) \
	X(x509_crt_get_expiration_time) \
	X(x509_crt_get_subject_alt_name) \
	X(strerror)

#define MEMBER(name) __typeof__(gnutls_##name) *name;
struct tls_library {
	FUNCTIONS(MEMBER)
};

#define ROW(name) SYMBOL_ROW(struct tls_library, gnutls_, name)
static const struct symbol_row rows[] = { FUNCTIONS(ROW) };

static void add_name(char *names, size_t size, const char *name)
{
	size_t have = strlen(names);
	snprintf(names + have, size - have, "%s%s", have ? " " : "", name);
}

static void read_names(const struct tls_library *tls, gnutls_x509_crt_t certificate, char *names,
		       size_t size)
{
	for (unsigned i = 0;; i++) {
		char name[256], address[INET6_ADDRSTRLEN];
		size_t length = sizeof(name) - 1;
		int r = tls->x509_crt_get_subject_alt_name(certificate, i, name, &length, NULL);
		if (r == GNUTLS_E_SHORT_MEMORY_BUFFER)
			continue; /* longer than any DNS name */
		if (r < 0)
			return;
		name[length] = '\0';
		if (r == GNUTLS_SAN_DNSNAME)
			add_name(names, size, name);
		else if (r == GNUTLS_SAN_IPADDRESS && inet_ntop(length == 4 ? AF_INET : AF_INET6,
								name, address, sizeof(address)))
			add_name(names, size, address);
	}
}

/*
 * Reads the first certificate of a PEM text: its validity (seconds since 1970), and its DNS names and addresses, separated by
 * spaces. Returns -EINVAL if there is no certificate, -ENOENT without GnuTLS.
 */
static int certificate_read(const char *pem, size_t size, int64_t *ret_from_s, int64_t *ret_until_s,
			    char *ret_names, size_t names_size, struct error *err)
{
	const gnutls_datum_t data = { (unsigned char *)pem, (unsigned)size };
	gnutls_x509_crt_t certificate;
	struct tls_library tls;
	int r = symbols_load(LIBRARY, NULL, rows, sizeof(rows) / sizeof(rows[0]), &tls,
			     "reading it needs GnuTLS", err);
	if (r < 0)
		return r;
	r = tls.x509_crt_init(&certificate);
	if (r < 0)
		return error_set(err, ENOMEM, "%s", tls.strerror(r));
	r = tls.x509_crt_import(certificate, &data, GNUTLS_X509_FMT_PEM);
	ret_names[0] = '\0';
	if (r >= 0) {
		*ret_from_s = tls.x509_crt_get_activation_time(certificate);
		*ret_until_s = tls.x509_crt_get_expiration_time(certificate);
		read_names(&tls, certificate, ret_names, names_size);
	}
	tls.x509_crt_deinit(certificate);
	return r < 0 ? error_set(err, EINVAL, "is not a PEM file with a certificate (%s)",
				 tls.strerror(r))
		     : 0;
}

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
		c->setting = settings[i].certificate;
		gather_setting(&d->host, settings[i].file, settings[i].key, "none", key);
		c->has_key = key[0] == '/' && host_has(&d->host, key);
		cleanup_free char *text = host_read_all(&d->host, c->path, &size);
		if (!text)
			snprintf(c->fault, sizeof(c->fault), "%s",
				 host_lacks(&d->host, c->path) ? "does not exist"
							       : "may not be read by this user");
		else if (certificate_read(text, size, &c->from_s, &c->until_s, c->names,
					  sizeof(c->names), &err) < 0)
			snprintf(c->fault, sizeof(c->fault), "%.*s", FACT_TEXT_MAX - 1, err.text);
	}
}

/* Returns the process's start time by the present clock (seconds since 1970); -1 if the process is gone. */
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
	    sscanf(behind_name + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &ticks) != 1)
		return -1;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &since_boot);
	return (double)(now.tv_sec - since_boot.tv_sec) +
	       (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/*
 * Finds how far the clock was set forward since the daemon started. The daemon made its socket when it started, so the socket's
 * mtime is that moment by the old clock. started_s() gives the same moment by the present clock.
 */
static void find_clock_step(struct doctor *d, struct facts_clock *clock)
{
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *hello = NULL;
	char path[PATH_MAX];
	struct stat st;

	if (daemon_find(&d->target, &client, NULL) < 0 ||
	    client_request(client, "hello", json_object(), &hello, NULL) < 0)
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
	if (!host_is_local(&d->host))
		return;
	int r = adjtimex(&timex);
	if (r >= 0)
		c->is_synced = r == TIME_ERROR || (timex.status & STA_UNSYNC) ? FACT_NO : FACT_YES;
	find_clock_step(d, c);
}

json_t *gather_hello(struct doctor *d)
{
	cleanup_client struct client *client = NULL;
	json_t *hello = NULL;

	if (!host_is_local(&d->host) || daemon_find(&d->target, &client, NULL) < 0 ||
	    client_request(client, "hello", json_object(), &hello, NULL) < 0)
		return NULL;
	return hello;
}

void gather_versions(struct doctor *d, struct facts *facts)
{
	struct facts_versions *v = &facts->versions;
	cleanup_json json_t *hello = gather_hello(d);

	gather_module_version(&d->host, v->module);
	if (!hello)
		return;
	const char *driver = json_string_or(hello, "driver", "");
	v->is_simulated = json_is_true(json_object_get(hello, "simulated"));
	snprintf(v->daemon_driver, sizeof(v->daemon_driver), "%.*s", FACT_NAME_MAX - 1, driver);
}
