#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "client/client.h"
#include "cli/doctor/gather.h"
#include "cli/explain/api.h"
#include "kube/dra/dra_names.h"

#define SLICES \
	DRA_API "/resourceslices?fieldSelector=spec.driver%%3D" DRA_DRIVER ",spec.nodeName%%3D%s"
#define CLASS DRA_API "/deviceclasses/" DRA_DRIVER
/* A claim that does not exist. The status of a request for it (404 or 403) shows whether this user may read claims. */
#define NO_CLAIM DRA_API "/namespaces/default/resourceclaims/allot-doctor"

static void find_socket(struct doctor *d, char ret[PATH_MAX])
{
	char directory[FACT_TEXT_MAX];

	gather_setting(&d->host, ALLOTD_CONF, "kube_dra_dir", "/var/lib/kubelet/plugins_registry",
		       directory);
	snprintf(ret, PATH_MAX, "%s/" DRA_DRIVER "-reg.sock", directory);
}

static void check_socket(struct doctor *d, const char *path, struct facts_dra *dra)
{
	dra->has_socket = host_has(&d->host, path)     ? FACT_YES
			  : host_lacks(&d->host, path) ? FACT_NO
						       : FACT_UNKNOWN;
	if (dra->has_socket == FACT_YES)
		dra->we_answer = gather_listens(&d->host, path, SOCK_STREAM);
}

static void ask_daemon(struct doctor *d, struct facts_dra *dra, char ret_socket[PATH_MAX])
{
	cleanup_json json_t *hello = gather_hello(d);
	const json_t *status = json_object_get(hello, "dra");
	dra->is_known = status != NULL;
	dra->is_registered = json_is_true(json_object_get(status, "registered"));
	const char *socket = json_string_value(json_object_get(status, "socket"));
	if (socket)
		snprintf(ret_socket, PATH_MAX, "%s", socket);
}

static void read_slices(const json_t *list, struct facts_dra *dra)
{
	const json_t *items = json_object_get(list, "items");

	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *spec = json_object_get(json_array_get(items, i), "spec");
		const json_t *devices = json_object_get(spec, "devices");
		for (size_t k = 0; k < json_array_size(devices); k++) {
			const json_t *one = json_array_get(devices, k);
			dra->devices++;
			dra->tainted += json_array_size(json_object_get(one, "taints")) > 0;
			dra->is_shared |= json_is_true(
				json_object_get(one, "allowMultipleAllocations"));
		}
	}
}

/* Returns the HTTP status, 0 if there was no answer. *ret_fault is the error; "" after a success and after 404. */
static int get(const struct kube_access *access, const char *path, json_t **ret,
	       char ret_fault[FACT_TEXT_MAX])
{
	struct error err = { 0 };
	int status = 0;
	int r = api_get(access, path, NULL, &status, ret, &err);

	ret_fault[0] = '\0';
	if (r < 0 && status != 404)
		snprintf(ret_fault, FACT_TEXT_MAX, "%.*s", FACT_TEXT_MAX - 1, err.text);
	return status;
}

static void ask_api(const struct kube_access *access, const char *node, struct facts_dra *dra)
{
	cleanup_json json_t *slices = NULL, *class = NULL, *claim = NULL;
	char path[FACT_TEXT_MAX + 160], fault[FACT_TEXT_MAX];

	dra->is_asked = true;
	snprintf(path, sizeof(path), SLICES, node);
	dra->has_api = get(access, path, &slices, dra->slices_fault) != 404;
	if (!dra->has_api)
		return;
	read_slices(slices, dra);
	get(access, NO_CLAIM, &claim, dra->claims_fault);
	/* Ignore `fault`: the driver works without the DeviceClass. */
	int status = get(access, CLASS, &class, fault);
	dra->has_class = status == 404 ? FACT_NO : status == 200 ? FACT_YES : FACT_UNKNOWN;
}

void gather_dra(struct doctor *d, struct facts *facts)
{
	struct facts_dra *dra = &facts->dra;
	struct kube_access access = { 0 };
	char setting[FACT_TEXT_MAX], socket[PATH_MAX];

	find_socket(d, socket);
	gather_setting(&d->host, ALLOTD_CONF, "kube_dra", "off", setting);
	dra->is_wanted = !strcmp(setting, "on");
	ask_daemon(d, dra, socket);
	dra->is_wanted |= dra->is_known;
	if (!dra->is_wanted)
		return;
	check_socket(d, socket, dra);
	if (facts->cluster.is_asked && gather_access(d, &access, NULL) > 0) {
		ask_api(&access, facts->cluster.node, dra);
		access_free(&access);
	}
}
