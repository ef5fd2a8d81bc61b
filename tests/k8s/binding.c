/*
 * Drives the node's part of a binding by commands on stdin, one a line: the steps of a device plugin's Allocate.
 *
 *     kube-binding KUBECONFIG NODE
 *
 *     allocate ID...     chooses the pod and container, and records that the container has its shares:
 *                        "chosen NAMESPACE/POD CONTAINER UUID:MIB:CORES,... agree|differ", then "written"
 *     fail NAMESPACE/POD marks the binding as failed: "written"
 *     wait NAMESPACE/POD waits until the pod is known: "known"
 *
 * A failure is reported as "error ..." in one line.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "daemon/kubelet/kube/binding.h"
#include "daemon/kubelet/kube/node_object.h"
#include "daemon/kubelet/kube/pods.h"
#include "kube/hami/find_allocating.h"

#define IDS_MAX 16
#define LINE_MAX_BYTES 4096

struct driver {
	const char *node;
	struct kube_client *client;
	struct node_object *object;
	struct node_pods *pods;
	char waited_for[512];
};

static void trouble(void *data, const struct error *err)
{
	if (err)
		log_warning("%s", err->text);
}

static void say_error(const struct error *err)
{
	printf("error %s\n", err->text);
	fflush(stdout);
}

static void written(void *data, const struct error *err)
{
	if (err->code) {
		say_error(err);
		return;
	}
	puts("written");
	fflush(stdout);
}

static const struct kube_pod *find_pod(const struct driver *d, const char *name)
{
	size_t count;
	const struct kube_pod *const *pod = pods_all(d->pods, &count);
	for (size_t i = 0; i < count; i++) {
		char full[1024];
		snprintf(full, sizeof(full), "%s/%s", pod[i]->pod_namespace, pod[i]->name);
		if (!strcmp(full, name))
			return pod[i];
	}
	return NULL;
}

static void say_choice(const struct choice *c)
{
	printf("chosen %s/%s %s ", c->pod->pod_namespace, c->pod->name,
	       c->pod->container[c->container]);
	for (size_t i = 0; i < c->share_count; i++)
		printf("%s%s:%" PRIu64 ":%u", i ? "," : "", c->share[i].card,
		       c->share[i].memory_mib, c->share[i].cores_pct);
	printf(" %s\n", c->cards_agree ? "agree" : "differ");
	fflush(stdout);
}

static void allocate(struct driver *d, char *ids)
{
	const char *id[IDS_MAX];
	struct node_lock lock;
	struct choice choice;
	struct error err;
	struct choice_query q = { .node = d->node, .id = id, .now_s = (int64_t)time(NULL) };
	for (char *part; (part = strsep(&ids, " ")) && q.id_count < IDS_MAX;)
		id[q.id_count++] = part;
	q.pod = pods_all(d->pods, &q.pod_count);
	int r = node_object_lock(d->object, &lock, &err);
	q.lock = r >= 0 ? &lock : NULL;
	if (r == -ENOENT || r >= 0)
		r = choice_make(&q, &choice, &err);
	if (r < 0) {
		say_error(&err);
		return;
	}
	say_choice(&choice);
	if (!binding_take(d->client, d->node, &choice, written, NULL))
		puts("error no memory");
	shares_free(&choice.shares);
}

static void fail(struct driver *d, const char *name)
{
	const struct kube_pod *pod = find_pod(d, name);
	if (!pod || !binding_fail(d->client, d->node, pod, written, NULL))
		say_error(&(struct error){ .text = "no such pod" });
}

static void changed(void *data)
{
	struct driver *d = data;
	if (!*d->waited_for || !find_pod(d, d->waited_for))
		return;
	puts("known");
	fflush(stdout);
	d->waited_for[0] = '\0';
}

static void take_line(struct driver *d, char *line)
{
	line[strcspn(line, "\n")] = '\0';
	char *rest = strchr(line, ' ');
	if (rest)
		*rest++ = '\0';
	if (!strcmp(line, "allocate") && rest) {
		allocate(d, rest);
	} else if (!strcmp(line, "fail") && rest) {
		fail(d, rest);
	} else if (!strcmp(line, "wait") && rest) {
		snprintf(d->waited_for, sizeof(d->waited_for), "%s", rest);
		changed(d);
	} else {
		puts("error no such command");
		fflush(stdout);
	}
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
	struct driver d = { .node = argc > 2 ? argv[2] : "" };
	if (argc != 3) {
		fputs("usage: kube-binding KUBECONFIG NODE\n", stderr);
		return 2;
	}
	log_init("kube-binding");
	int r = access_read_config(argv[1], &access, &err);
	if (r >= 0)
		r = kube_client_new(&access, &d.client, &err);
	if (r < 0) {
		fprintf(stderr, "kube-binding: %s\n", err.text);
		return 1;
	}
	d.object = node_object_start(d.client, d.node, trouble, NULL);
	d.pods = pods_start(d.client, d.node, changed, trouble, &d);
	int status = d.object && d.pods ? serve(&d) : 1;
	pods_stop(d.pods);
	node_object_stop(d.object);
	kube_client_free(d.client);
	access_free(&access);
	return status;
}
