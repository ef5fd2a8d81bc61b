#include "daemon/kubelet/dra/dra.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/paths.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/gpu/health/health.h"
#include "daemon/kubelet/dra/devices.h"
#include "daemon/kubelet/dra/dra_inside.h"
#include "daemon/kubelet/dra/need.h"
#include "daemon/kubelet/dra/publisher.h"
#include "daemon/kubelet/dra/spec_files.h"
#include "daemon/kubelet/endpoint/pack.h"
#include "daemon/kubelet/kube/kube.h"
#include "kube/dra/dra_names.h"

#define LOOK_NS NSEC_PER_SEC
/* publish() runs at least this often, because health_changed() and dra_promises_changed() do not report all changes. */
#define PUBLISH_NS (30 * NSEC_PER_SEC)
/* The kubelet's documentation asks for <driver>-reg.sock. */
#define SOCKET DRA_DRIVER "-reg.sock"

static int check_path(const char *setting, const char *path, struct error *err)
{
	return *path == '/'
		       ? 0
		       : error_set(err, EINVAL, "%s: '%.100s': must be a full path", setting, path);
}

static int make_path(const struct config *config, char ret[PLUGIN_SOCKET_MAX], struct error *err)
{
	if (paths_join(config->kube_dra_dir, SOCKET, ret, PLUGIN_SOCKET_MAX, NULL) < 0)
		return error_set(err, EINVAL,
				 "kube_dra_dir: '%.100s': must be at most %zu bytes, so that the path "
				 "of the socket " SOCKET " fits",
				 config->kube_dra_dir, PLUGIN_SOCKET_MAX - sizeof(SOCKET) - 1);
	return 0;
}

int dra_check(const struct config *config, struct error *err)
{
	char path[PLUGIN_SOCKET_MAX];
	if (config->is_kube_dra && !strcmp(config->kube_api, "off"))
		return error_set(err, EINVAL,
				 "kube_dra = on: kube_api must not be off: only the API server "
				 "knows which devices a claim has");
	int r = check_path("kube_dra_dir", config->kube_dra_dir, err);
	if (r >= 0)
		r = check_path("kube_cdi_dir", config->kube_cdi_dir, err);
	return r < 0 ? r : make_path(config, path, err);
}

/* Logs `why`, unless it equals the last logged text. NULL: the failure is over, so the next one is logged. */
static void log_failure(struct dra *dra, const char *what, const char *why)
{
	if (why && (!dra->logged_error || strcmp(dra->logged_error, why) != 0))
		log_warning("DRA: %s: %s", what, why);
	free(dra->logged_error);
	dra->logged_error = why ? strdup(why) : NULL;
}

static void get_info(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	reply_and_end(call, dra_message_info());
}

/* After a failed registration, the kubelet itself tries again. */
static void notify_status(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	struct dra *dra = data;
	char *why = NULL;
	int r = dra_status_read(message, size, &why);
	if (r < 0) {
		grpc_call_end(call, GRPC_INVALID_ARGUMENT,
			      "NotifyRegistrationStatus: the message is malformed");
		return;
	}
	dra->is_registered = !why;
	if (!why)
		log_info("DRA: the kubelet has registered " DRA_DRIVER);
	log_failure(dra, "the kubelet does not register " DRA_DRIVER, why);
	free(why);
	reply_and_end(call, grpc_message_new(0));
}

#define REGISTRATION "/pluginregistration.Registration/"
#define SERVICE(version) "/k8s.io.kubelet.pkg.apis.dra." version ".DRAPlugin/"
static const struct grpc_method methods[] = {
	{ REGISTRATION "GetInfo", get_info },
	{ REGISTRATION "NotifyRegistrationStatus", notify_status },
	{ SERVICE("v1") "NodePrepareResources", dra_prepare },
	{ SERVICE("v1") "NodeUnprepareResources", dra_unprepare },
	{ SERVICE("v1beta1") "NodePrepareResources", dra_prepare },
	{ SERVICE("v1beta1") "NodeUnprepareResources", dra_unprepare },
};

/*
 * Creates the socket if it is missing; the kubelet then notices it and calls us on it. False without a socket: the directory
 * may not exist yet, or another driver of the same name may have the socket.
 */
static bool keep_socket(struct dra *dra)
{
	const struct grpc_service service = { .methods = methods,
					      .method_count = sizeof(methods) / sizeof(methods[0]),
					      .data = dra,
					      .limits = grpc_limits_default() };
	struct error err = { 0 };
	if (plugin_socket_exists(&dra->socket))
		return true;
	plugin_socket_close(&dra->socket);
	if (plugin_socket_open(&dra->socket, dra->node->loop, &service, &err) >= 0)
		return true;
	log_failure(dra, "the socket for the kubelet can't be made", err.text);
	return false;
}

static void publish(struct dra *dra)
{
	if (!plugin_socket_exists(&dra->socket))
		return;
	publisher_set_devices(dra->publisher, dra_node_devices(dra->node));
	node_kube_refresh(dra->node->kube);
	dra->published_ns = clock_now_ns();
}

static void timer_due(void *data, uint32_t events)
{
	struct dra *dra = data;
	uint64_t now_ns = clock_now_ns();
	if (!keep_socket(dra)) {
		publisher_pause(dra->publisher);
		dra->published_ns = 0;
	} else if (!dra->published_ns || now_ns - dra->published_ns >= PUBLISH_NS)
		publish(dra);
	else
		publisher_refresh(dra->publisher);
	if (now_ns - dra->swept_ns >= dra->node->config.claim_look_ns) {
		spec_files_sweep(dra->node->config.kube_cdi_dir, dra->node->claims);
		dra->swept_ns = now_ns;
	}
}

static void health_changed(void *data, struct card *card)
{
	publish(data);
}

void dra_promises_changed(struct dra *dra)
{
	/* Several changes often come together, so publish a moment later. */
	if (!dra || !dra->published_ns)
		return;
	dra->published_ns = 0;
	loop_arm(dra->timer, LOOK_NS / 10, LOOK_NS);
}

static int start(struct dra *dra, struct error *err)
{
	struct node *node = dra->node;
	int r = dra_check(&node->config, err);
	if (r >= 0)
		r = make_path(&node->config, dra->socket.path, err);
	if (r < 0)
		return r;
	dra->client = node_kube_client(node->kube);
	dra->node_name = node_kube_name(node->kube);
	dra->need = dra_need_new(dra->client, node->config.claim_look_ns);
	dra->publisher = publisher_start(dra->client, dra->node_name, node_kube_object(node->kube));
	if (!dra->need || !dra->publisher)
		return error_set_errno(err, ENOMEM, "DRA driver");
	r = claims_add_need_check(node->claims, dra_need_of, dra->need, err);
	if (r >= 0)
		r = health_subscribe(node, health_changed, dra, err);
	if (r < 0)
		return r;
	r = loop_add_timer(node->loop, timer_due, dra, &dra->timer);
	if (r < 0)
		return error_set_errno(err, -r, "can't make a timer");
	loop_arm(dra->timer, 0, LOOK_NS);
	spec_files_restore(node->config.kube_cdi_dir, node->claims);
	spec_files_sweep(node->config.kube_cdi_dir, node->claims);
	dra->swept_ns = clock_now_ns();
	return 0;
}

/* The driver's part of the reply to "hello" of the control socket. */
static json_t *to_json(const struct dra *dra)
{
	struct dra_figures figures;
	dra_figures(dra, &figures);
	return json_pack("{s:b,s:I,s:s}", "registered", figures.is_registered, "devices",
			 (json_int_t)figures.devices, "socket", dra->socket.path);
}

int dra_start(struct node *node, struct dra **ret, struct error *err)
{
	if (!node->config.is_kube_dra)
		return 0;
	if (node->is_private)
		return error_set(
			err, EPERM,
			"kube_dra = on: must be off in a private daemon: only the system's daemon "
			"(started by root without --private) can be the DRA driver");
	struct dra *dra = calloc(1, sizeof(*dra));
	if (!dra)
		return error_set_errno(err, ENOMEM, "DRA driver");
	dra->node = node;
	TAILQ_INIT(&dra->preparing);
	int r = start(dra, err);
	if (r < 0) {
		dra_stop(dra);
		return error_add(err, r, "DRA driver");
	}
	*ret = dra;
	node->dra_json = to_json;
	return 0;
}

struct dra *dra_stop(struct dra *dra)
{
	if (!dra)
		return NULL;
	dra->node->dra_json = NULL;
	claims_remove_need_check(dra->node->claims, dra_need_of, dra->need);
	health_unsubscribe(dra->node, health_changed, dra);
	dra->timer = loop_remove(dra->timer);
	/* This ends the kubelet's calls, so the steps below have none to answer. */
	plugin_socket_close(&dra->socket);
	dra_prepare_end(dra);
	dra->publisher = publisher_stop(dra->publisher);
	dra->need = dra_need_free(dra->need);
	free(dra->logged_error);
	free(dra);
	return NULL;
}

bool dra_figures(const struct dra *dra, struct dra_figures *ret)
{
	if (!dra)
		return false;
	bool is_connected = dra->socket.server && grpc_server_connections(dra->socket.server) > 0;
	*ret = (struct dra_figures){ .is_registered = dra->is_registered && is_connected,
				     .prepared = dra->prepared,
				     .refused = dra->refused,
				     .unprepared = dra->unprepared,
				     .prepare_ns = dra->prepare_ns };
	publisher_count(dra->publisher, &ret->devices, &ret->publish_failures);
	return true;
}
