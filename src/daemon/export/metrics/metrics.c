#include "daemon/export/metrics/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpu/census.h"
#include "http/address.h"
#include "daemon/export/metrics/gather_figures.h"
#include "daemon/export/metrics/metric.h"
#include "daemon/export/metrics/metrics_names.h"
#include "daemon/state/tenant.h"
#include "http/http_server.h"
#include "http/bearer_token.h"

#define PAGE_NS (100 * NSEC_PER_MSEC) /* a page is reused for this long */
/* /readyz fails if the driver does not answer within this time */
#define DRIVER_NS (10 * NSEC_PER_SEC)

struct metrics {
	struct node *node;
	struct address address;
	struct server *server;
	struct server_text *page; /* the last page; NULL: none */
	uint64_t page_ns;
	uint64_t started_ns; /* since 1970 */
	uint64_t pages, pages_cost_ns;
	bool token_failed; /* a failure to read the token was logged */
};

int metrics_check(const struct config *config, struct error *err)
{
	struct address address;
	bool has_token = strcmp(config->metrics_token_file, "none") != 0;
	if (has_token && config->metrics_token_file[0] != '/')
		return error_set(err, EINVAL,
				 "metrics_token_file: '%.100s': must be a full path, or none",
				 config->metrics_token_file);
	bool has_certificate = strcmp(config->metrics_tls_certificate, "none") != 0;
	bool has_key = strcmp(config->metrics_tls_key, "none") != 0;
	if (has_certificate != has_key)
		return error_set(err, EINVAL, "%s: must be set too, since %s is set",
				 has_key ? "metrics_tls_certificate" : "metrics_tls_key",
				 has_key ? "metrics_tls_key" : "metrics_tls_certificate");
	int r = address_parse(config->metrics_listen, &address, err);
	if (r < 0)
		return error_add(err, r, "metrics_listen");
	if (!has_token && !config->metrics_open && !address_is_local(&address))
		return error_set(err, EACCES,
				 "metrics_listen: '%s' can be reached from other machines: name a "
				 "metrics_token_file, or set metrics_open = on",
				 config->metrics_listen);
	return 0;
}

static int make_page(struct metrics *m)
{
	struct metrics_figures figures;
	uint64_t before_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	char *text;
	size_t length;
	struct metric_set sets[3] = { { metrics_rows, metrics_row_count } };
	size_t set_count = 1;
	unsigned names = 0;
	int r = metrics_gather(m->node, &figures);
	if (r < 0)
		return r;
	metrics_names_parse(m->node->config.metrics_names, &names, NULL);
	if (names & METRICS_NAMES_HAMI)
		sets[set_count++] = (struct metric_set){ metrics_rows_hami, metrics_row_count_hami };
	if (names & METRICS_NAMES_GPU_MANAGER)
		sets[set_count++] = (struct metric_set){ metrics_rows_gpu_manager,
							 metrics_row_count_gpu_manager };
	figures.daemon.started_ns = m->started_ns;
	figures.daemon.pages = m->pages;
	figures.daemon.pages_ns = m->pages_cost_ns;
	r = metrics_write_sets(sets, set_count, &figures, &text, &length);
	metrics_figures_free(&figures);
	if (r < 0)
		return r;
	m->page = server_text_free(m->server, m->page);
	m->page = server_text_new(m->server, text, length, EXPOSITION_TYPE);
	if (!m->page)
		return -ENOMEM;
	m->page_ns = clock_now_ns();
	m->pages++;
	m->pages_cost_ns += clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
	return 0;
}

static void answer_metrics(struct metrics *m, struct server_answer *ret)
{
	bool is_good = m->page && clock_now_ns() - m->page_ns < PAGE_NS;
	if (!is_good && make_page(m) < 0)
		*ret = (struct server_answer){ .status = 500, .line = "out of memory\n" };
	else
		*ret = (struct server_answer){ .status = 200, .text = m->page };
}

static void answer_health(struct metrics *m, struct server_answer *ret)
{
	*ret = (struct server_answer){ .status = 200, .line = "ok\n" };
}

/* Ready: the driver answers, and all processes of tenants taken over from an earlier daemon have connected to this daemon. */
static void answer_ready(struct metrics *m, struct server_answer *ret)
{
	*ret = (struct server_answer){ .status = 200, .line = "ready\n" };
	if (census_wait_ns(m->node->census, clock_now_ns()) >= DRIVER_NS)
		*ret = (struct server_answer){ .status = 503,
					       .line = "not ready: the driver does not answer\n" };
	if (tenant_is_any_adopting(m->node))
		*ret = (struct server_answer){
			.status = 503,
			.line = "not ready: processes of the previous daemon have yet to connect\n"
		};
}

static const struct {
	const char *path;
	void (*answer)(struct metrics *m, struct server_answer *ret);
	bool needs_token;
} paths[] = {
	{ "/metrics", answer_metrics, true },
	{ "/healthz", answer_health, false },
	{ "/readyz", answer_ready, false },
};

/* If the result is false, *ret is the answer. */
static bool may_ask(struct metrics *m, const char *authorization, struct server_answer *ret)
{
	const char *path = m->node->config.metrics_token_file;
	char token[TOKEN_MAX + 1];
	struct error err = { 0 };
	if (!strcmp(path, "none"))
		return true;
	int r = token_read(path, token, &err);
	if (r < 0 && !m->token_failed)
		log_warning("metrics_token_file: %s: every request for metrics is refused until allotd can "
			    "read a token from this file",
			    err.text);
	m->token_failed = r < 0;
	if (r < 0)
		*ret = (struct server_answer){
			.status = 503,
			.line = "the token can't be checked, because the file of setting "
				"metrics_token_file can't be read: see allotd's log\n"
		};
	else if (!token_is_named(token, authorization))
		*ret = (struct server_answer){
			.status = 401,
			.line = "a token is needed: send the one in the file of setting metrics_token_file "
				"as Authorization: Bearer TOKEN\n",
			.header = "WWW-Authenticate",
			.header_value = "Bearer realm=\"allot metrics\""
		};
	else
		return true;
	return false;
}

static void handle(void *data, const struct server_request *request, struct server_answer *ret)
{
	struct metrics *m = data;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(paths[i].path, request->path) != 0)
			continue;
		if (strcmp(request->method, "GET") && strcmp(request->method, "HEAD"))
			*ret = (struct server_answer){ .status = 405,
						       .line = "must be GET or HEAD\n",
						       .header = "Allow",
						       .header_value = "GET, HEAD" };
		else if (!paths[i].needs_token || may_ask(m, request->authorization, ret))
			paths[i].answer(m, ret);
		return;
	}
	*ret = (struct server_answer){
		.status = 404, .line = "not found: there are /metrics, /healthz and /readyz\n"
	};
}

static int check_token(const struct config *config, struct error *err)
{
	char token[TOKEN_MAX + 1];
	if (!strcmp(config->metrics_token_file, "none"))
		return 0;
	int r = token_read(config->metrics_token_file, token, err);
	return r < 0 ? error_add(err, r, "metrics_token_file") : 0;
}

static int serve(struct metrics *m, struct error *err)
{
	char text[ADDRESS_TEXT_MAX];
	int fd;
	int r = address_listen(&m->address, !m->node->is_private, &fd, err);
	if (r < 0)
		return error_add(err, r, "metrics_listen");
	address_print(fd, text);
	const struct config *config = &m->node->config;
	bool has_tls = strcmp(config->metrics_tls_certificate, "none") != 0;
	const struct server_config terms = {
		.loop = m->node->loop,
		.listen_fd = fd,
		.certificate_file = has_tls ? config->metrics_tls_certificate : NULL,
		.key_file = config->metrics_tls_key,
		.handler = handle,
		.data = m,
	};
	r = server_start(&terms, &m->server, err);
	if (r < 0) {
		close(fd);
		address_unlink(&m->address);
		return error_add(err, r, "metrics_listen");
	}
	log_info("metrics are served at %s%s", text, has_tls ? " by TLS" : "");
	return 0;
}

int metrics_start(struct node *node, struct metrics **ret, struct error *err)
{
	struct address address;
	int r = metrics_check(&node->config, err);
	if (r >= 0)
		r = address_parse(node->config.metrics_listen, &address, err);
	if (r < 0 || !address.length)
		return r;
	r = check_token(&node->config, err);
	if (r < 0)
		return r;
	struct metrics *m = calloc(1, sizeof(*m));
	if (!m)
		return error_set_errno(err, ENOMEM, "metrics");
	*m = (struct metrics){ .node = node,
			       .address = address,
			       .started_ns = clock_read_ns(CLOCK_REALTIME) };
	r = serve(m, err);
	if (r < 0) {
		free(m);
		return r;
	}
	*ret = m;
	return 0;
}

struct metrics *metrics_stop(struct metrics *m)
{
	if (!m)
		return NULL;
	server_text_free(m->server, m->page);
	server_stop(m->server);
	address_unlink(&m->address);
	free(m);
	return NULL;
}
