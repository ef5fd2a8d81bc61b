/* Starts and stops the parts of allot-scheduler in order. In between, the event loop runs them. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/address.h"
#include "scheduler/options.h"
#include "scheduler/page/page.h"
#include "scheduler/routes.h"
#include "scheduler/service/issuer.h"
#include "scheduler/service/scheduler.h"
#include "scheduler/util/heap.h"

#define DAY_S 86400
#define EXPIRY_SOON_DAYS 14

struct signals {
	int fd;
	struct scheduler *scheduler;
	struct loop_source *source;
	bool is_ending;
};

static void cluster_ended(void *data)
{
	const struct scheduler *s = data;
	loop_quit(s->loop);
}

/*
 * The first signal other than SIGHUP cancels bindings under way, releases the lease, and then ends the program. A second
 * signal, or the first if there is no cluster, ends it at once.
 */
static void on_signal(void *data, uint32_t events)
{
	struct signals *signals = data;
	struct scheduler *s = signals->scheduler;
	struct signalfd_siginfo info;
	if (read(signals->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		sched_audit_reopen(s->audit);
		return;
	}
	log_info("received signal %d: stopping", (int)info.ssi_signo);
	if (s->cluster && !signals->is_ending)
		cluster_end(s->cluster);
	else
		loop_quit(s->loop);
	signals->is_ending = true;
}

static int watch_signals(struct signals *signals, struct error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	int r = signals->fd < 0 ? -errno
				: loop_add(signals->scheduler->loop, signals->fd, EPOLLIN,
					   on_signal, signals, &signals->source);
	return r < 0 ? error_set_errno(err, -r, "signals") : 0;
}

struct listener {
	struct address address;
	struct server *server; /* NULL if off */
};

static void check_expiry(const char *file)
{
	struct error err = { 0 };
	int64_t expiry_s;
	if (issuer_expiry(file, &expiry_s, &err) < 0)
		return; /* no error here: libmicrohttpd has accepted the file */
	int64_t days = (expiry_s - (int64_t)time(NULL)) / DAY_S;
	if (expiry_s <= (int64_t)time(NULL))
		log_warning(
			"%s: expired: clients refuse it: renew the file; it is read again when it changes",
			file);
	else if (days < EXPIRY_SOON_DAYS)
		log_warning(
			"%s: expires in %d days: renew the file; it is read again when it changes",
			file, (int)days);
}

static int listen_at(struct listener *l, struct scheduler *s, const char *setting,
		     const char *where, bool has_tls, struct error *err)
{
	const struct config *config = &s->config;
	char text[ADDRESS_TEXT_MAX];
	int fd;
	int r = address_parse(where, &l->address, err);
	if (r < 0 || !l->address.length)
		return r;
	r = address_listen(&l->address, false, &fd, err);
	if (r < 0) {
		/* close_listener() must not remove a socket file that another process uses. */
		l->address.length = 0;
		return error_add(err, r, "%s", setting);
	}
	address_print(fd, text);
	const struct server_config terms = {
		.loop = s->loop,
		.listen_fd = fd,
		.certificate_file = has_tls ? config->tls_certificate : NULL,
		.key_file = config->tls_key,
		.client_ca_file = has_tls && strcmp(config->client_ca, "none") ? config->client_ca
									       : NULL,
		.connections_max = config->connections,
		.idle_ns = config->idle_ns,
		.body_max = config->body_max,
		.handler = routes_handle,
		.data = s,
	};
	r = server_start(&terms, &l->server, err);
	if (r < 0) {
		close(fd);
		return error_add(err, r, "%s", setting);
	}
	if (has_tls)
		check_expiry(config->tls_certificate);
	log_info("serves %s at %s", has_tls ? "https" : "http", text);
	return 0;
}

static void close_listener(struct listener *l)
{
	l->server = server_stop(l->server);
	if (l->address.length)
		address_unlink(&l->address);
}

static int follow_cluster(struct scheduler *s, struct error *err)
{
	/* The cluster keeps pointers to these strings. */
	static char lease_namespace[CONFIG_NAME_MAX], lease_name[CONFIG_NAME_MAX];
	static char kube_namespace[CONFIG_NAME_MAX], kube_name[CONFIG_NAME_MAX];
	const struct config *config = &s->config;
	bool has_lease = config_lease(config->lease, lease_namespace, lease_name);
	bool has_kube = config_lease(config->kube_scheduler_lease, kube_namespace, kube_name);
	const struct cluster_terms terms = {
		.loop = s->loop,
		.kube_api = config->kube_api,
		.component = config->scheduler_name,
		.model = { .request = config_request_terms(config),
			   .hold_ns = config->hold_ns,
			   .gang_patience_ns = config->gang_patience_ns,
			   .gang_hold_ns = config->has_gangs ? config->gang_hold_ns : 0 },
		.bind_limit_ns = config->bind_limit_ns,
		.gang_wait_ns = config->gang_wait_ns,
		.lock_expiry_s = (int64_t)(config->lock_expiry_ns / NSEC_PER_SEC),
		.opportunistic_patience_ns = config->opportunistic_patience_ns,
		.has_filter_events = config->has_filter_events,
		.audit = s->audit,
		.lease_namespace = has_lease ? lease_namespace : NULL,
		.lease_name = has_lease ? lease_name : NULL,
		.kube_lease_namespace = has_kube ? kube_namespace : NULL,
		.kube_lease_name = has_kube ? kube_name : NULL,
		.ended = cluster_ended,
		.data = s,
	};
	return strcmp(config->kube_api, "off") ? cluster_start(&terms, &s->cluster, err) : 0;
}

static bool may_sweep(void *data)
{
	return cluster_leads(data);
}

static int start_claims(struct scheduler *s, struct error *err)
{
	if (!s->webhook.device_class)
		return 0;
	struct kube_client *client = cluster_client(s->cluster);
	s->claim_reviews = claim_reviews_new(client, &s->webhook);
	s->template_sweep = template_sweep_start(client, may_sweep, s->cluster);
	return s->claim_reviews && s->template_sweep ? 0
						     : error_set_errno(err, ENOMEM, "make_claims");
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv)
{
	struct scheduler scheduler = { 0 };
	struct signals signals = { .fd = -1, .scheduler = &scheduler };
	struct listener https = { 0 }, http = { 0 };
	struct cluster_page *page = NULL;
	struct error err = { 0 };

	heap_keep();
	log_init("allot-scheduler");
	int status = options_parse(argc, argv, &scheduler.config);
	if (status >= 0)
		return status;
	log_set_level(log_level_of(scheduler.config.log_level));
	raise_descriptor_limit();
	scheduler.webhook = config_webhook_terms(&scheduler.config);
	scheduler.webhook.quota = routes_quota;
	scheduler.webhook.data = &scheduler;
	scheduler.authorizer = config_authorizer(&scheduler.config);
	scheduler.explaining.per_second = scheduler.config.explain_nodes;

	int r = loop_new(&scheduler.loop, &err);
	if (r >= 0)
		r = watch_signals(&signals, &err);
	if (r >= 0)
		r = sched_audit_start(scheduler.config.audit_log, &scheduler.audit, &err);
	if (r >= 0)
		r = follow_cluster(&scheduler, &err);
	if (r >= 0)
		r = start_claims(&scheduler, &err);
	if (r >= 0)
		r = listen_at(&https, &scheduler, "https_listen", scheduler.config.https_listen,
			      true, &err);
	if (r >= 0)
		r = listen_at(&http, &scheduler, "http_listen", scheduler.config.http_listen, false,
			      &err);
	if (r >= 0)
		r = cluster_page_start(&scheduler, &page, &err);
	if (r >= 0) {
		r = loop_run(scheduler.loop);
		if (r < 0)
			error_set_errno(&err, -r, "event loop");
	}
	if (r < 0)
		log_error("%s", err.text);
	/* The web page, the webhook's reviews and the template sweep use the cluster, so they stop before it. */
	cluster_page_stop(page);
	claim_reviews_free(scheduler.claim_reviews);
	template_sweep_stop(scheduler.template_sweep);
	/* Bindings refer to the servers' calls, so the cluster stops before the servers. */
	cluster_stop(scheduler.cluster);
	close_listener(&http);
	close_listener(&https);
	sched_audit_stop(scheduler.audit);
	loop_remove(signals.source);
	close_fd(&signals.fd);
	loop_free(scheduler.loop);
	return r < 0 ? 1 : 0;
}
