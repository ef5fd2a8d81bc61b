/*
 * Drives the scheduler's binder and feed by commands on stdin, one a line. The feed's calls to the model go to stdout.
 *
 *     kube-sched-bind KUBECONFIG LIMIT_S LOCK_EXPIRY_S
 *
 *     bind NAMESPACE POD UID NODE SHARES   "begun", then "bound POD" or "failed POD ERRNO WHY"
 *     follow on|off                        on: act as a scheduler that is not the leader and may not write; off: as the leader
 *     cancel                               ends all bindings
 *     status UID                           "status none" if the pod is not being bound, else "status BEFORE LOCK"; "-" for no lock
 *     feed                                 starts the watches: "begin nodes", "node NAME", "node-gone NAME", "synced nodes", ...
 *
 * SHARES "-" means no shares. Any other failure is reported as "error ..." in one line.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "scheduler/bind/bind.h"
#include "scheduler/cluster/feed.h"

#define WORDS_MAX 8
#define LINE_MAX_BYTES 4096

struct driver {
	struct kube_client *client;
	struct binder *binder;
	struct feed *feed;
	bool may_act;
};

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

/* ---- a model that prints each call ---- */

static const char *meta(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(json_object_get(object, "metadata"), key));
}

static const char *kind_name(enum model_kind kind)
{
	static const char *const names[] = {
		[MODEL_NODES] = "nodes", [MODEL_PODS] = "pods", [MODEL_QUOTAS] = "quotas"
	};
	return names[kind];
}

void model_list_begin(struct model *model, enum model_kind kind)
{
	say("begin %s", kind_name(kind));
}

void model_list_end(struct model *model, enum model_kind kind)
{
	say("synced %s", kind_name(kind));
}

int model_update_node(struct model *model, const json_t *node, struct error *err)
{
	const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
	say("node %s", meta(node, "name"));
	return json_object_get(labels, "unreadable")
		       ? error_set(err, EINVAL, "node %s: unreadable", meta(node, "name"))
		       : 0;
}

void model_remove_node(struct model *model, const char *name)
{
	say("node-gone %s", name);
}

int model_update_pod(struct model *model, const json_t *pod, struct error *err)
{
	say("pod %s", meta(pod, "name"));
	return 0;
}

void model_remove_pod(struct model *model, const json_t *pod)
{
	say("pod-gone %s", meta(pod, "name"));
}

int model_update_quota(struct model *model, const json_t *quota, struct error *err)
{
	say("quota %s", meta(quota, "name"));
	return 0;
}

void model_remove_quota(struct model *model, const json_t *quota)
{
	say("quota-gone %s", meta(quota, "name"));
}

/* ---- commands ---- */

static void ended(void *data, const struct error *err)
{
	char *pod = data;
	if (err->code)
		say("failed %s %s %s", pod, strerrorname_np(err->code), err->text);
	else
		say("bound %s", pod);
	free(pod);
}

static void begin_bind(struct driver *d, char **word)
{
	struct decision decision = {
		.pod_namespace = word[1], .pod = word[2], .uid = word[3], .node = word[4]
	};
	struct error err;
	if (strcmp(word[5], "-") != 0 && shares_parse(word[5], &decision.shares, &err) < 0) {
		say("error %s", err.text);
		return;
	}
	char *name = strdup(word[2]);
	int r = bind_start(d->binder, &decision, ended, name);
	shares_free(&decision.shares);
	if (r < 0)
		free(name);
	if (r < 0)
		say("error %s", strerrorname_np(-r));
	else
		say("begun");
}

static void ready(void *data)
{
	say("ready");
}

static void node_seen(void *data, const json_t *node)
{
	struct driver *d = data;
	binder_node_changed(d->binder, node);
}

static void begin_feed(struct driver *d)
{
	const struct feed_terms terms = {
		.client = d->client, .ready = ready, .node = node_seen, .data = d
	};
	if (!d->feed && feed_start(&terms, &d->feed) < 0)
		say("error no memory");
}

static void say_status(const struct driver *d, const char *uid)
{
	struct bind_status status;
	if (bind_get_status(d->binder, uid, &status))
		say("status %u %s", status.before, status.lock ? status.lock : "-");
	else
		say("status none");
}

static void take_line(struct driver *d, char *line)
{
	char *word[WORDS_MAX];
	size_t words = 0;
	line[strcspn(line, "\n")] = '\0';
	for (char *part; words < WORDS_MAX && (part = strsep(&line, " "));)
		word[words++] = part;
	if (words == 6 && !strcmp(word[0], "bind"))
		begin_bind(d, word);
	else if (words == 2 && !strcmp(word[0], "follow"))
		d->may_act = strcmp(word[1], "on") != 0;
	else if (!strcmp(word[0], "cancel"))
		binder_cancel(d->binder);
	else if (words == 2 && !strcmp(word[0], "status"))
		say_status(d, word[1]);
	else if (!strcmp(word[0], "feed"))
		begin_feed(d);
	else
		say("error no such command");
}

static bool may_act(void *data)
{
	return ((struct driver *)data)->may_act;
}

static int serve(struct driver *d)
{
	char line[LINE_MAX_BYTES];
	setvbuf(stdin, NULL, _IONBF, 0);
	for (;;) {
		struct pollfd fds[] = { { .fd = 0, .events = POLLIN },
					{ .fd = kube_client_fd(d->client), .events = POLLIN } };
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return 1;
		if (fds[1].revents)
			kube_client_process(d->client);
		if (!fds[0].revents)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		take_line(d, line);
	}
}

int main(int argc, char **argv)
{
	struct kube_access access;
	struct error err = { 0 };
	struct driver d = { .may_act = true };
	if (argc != 4) {
		fputs("usage: kube-sched-bind KUBECONFIG LIMIT_S LOCK_EXPIRY_S\n", stderr);
		return 2;
	}
	log_init("kube-sched-bind");
	int r = access_read_config(argv[1], &access, &err);
	if (r >= 0)
		r = kube_client_new(&access, &d.client, &err);
	const struct bind_terms terms = { .client = d.client,
					  .limit_ns = strtoull(argv[2], NULL, 10) * 1000000000,
					  .lock_expiry_s = atoi(argv[3]),
					  .may_act = may_act,
					  .data = &d };
	if (r >= 0 && binder_new(&terms, &d.binder) < 0)
		r = error_set_errno(&err, ENOMEM, "binder");
	if (r < 0) {
		fprintf(stderr, "kube-sched-bind: %s\n", err.text);
		return 1;
	}
	int status = serve(&d);
	feed_stop(d.feed);
	binder_free(d.binder);
	kube_client_free(d.client);
	access_free(&access);
	return status;
}
