#include "daemon/kubelet/dra/dra_messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/kubelet/endpoint/pack.h"
#include "daemon/kubelet/proto/dra.pb-c.h"
#include "kube/dra/dra_names.h"

#define PLUGIN_TYPE "DRAPlugin"

struct grpc_message *dra_message_info(void)
{
	/* info.endpoint stays empty, so the kubelet goes on to use the socket that it called. */
	char *versions[] = { text("v1.DRAPlugin"), text("v1beta1.DRAPlugin") };
	Dra__PluginInfo info = DRA__PLUGIN_INFO__INIT;
	info.type = text(PLUGIN_TYPE);
	info.name = text(DRA_DRIVER);
	info.supported_versions = versions;
	info.n_supported_versions = sizeof(versions) / sizeof(versions[0]);
	return pack(&info.base);
}

int dra_status_read(const uint8_t *data, size_t size, char **ret_error)
{
	Dra__RegistrationStatus *status = dra__registration_status__unpack(NULL, size, data);
	if (!status)
		return -EPROTO;
	char *why = NULL;
	bool is_registered = status->plugin_registered;
	if (!is_registered)
		why = strdup(status->error);
	dra__registration_status__free_unpacked(status, NULL);
	if (!is_registered && !why)
		return -ENOMEM;
	*ret_error = why;
	return 0;
}

static bool is_name(const char *name, size_t most)
{
	size_t length = strlen(name);
	return length && length <= most && *name != '.' && *name != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == length;
}

int dra_request_read(const uint8_t *data, size_t size, struct dra_request *ret)
{
	Dra__ClaimsRequest *from = dra__claims_request__unpack(NULL, size, data);
	*ret = (struct dra_request){ .unpacked = from };
	if (!from)
		return -EPROTO;
	if (from->n_claims > DRA_MOST_CLAIMS)
		return -E2BIG;
	ret->name = calloc(from->n_claims + 1, sizeof(*ret->name));
	if (!ret->name)
		return -ENOMEM;
	for (; ret->count < from->n_claims; ret->count++) {
		const Dra__Claim *c = from->claims[ret->count];
		if (!is_name(c->namespace_, 63) || !is_name(c->uid, 63) || !is_name(c->name, 253))
			return -EINVAL;
		ret->name[ret->count] = (struct dra_name){ c->namespace_, c->uid, c->name };
	}
	return 0;
}

void dra_request_free(struct dra_request *request)
{
	if (request->unpacked)
		dra__claims_request__free_unpacked(request->unpacked, NULL);
	free(request->name);
	*request = (struct dra_request){ 0 };
}

/* Makes the answer for one claim. The caller frees claim->devices and *ret_words, also on failure. */
static int translate(const struct dra_outcome *from, Dra__PreparedClaim *claim, char ***ret_words)
{
	size_t count = from->error ? 0 : from->count;
	/* for each device: the name of its request, and the CDI id */
	char **words = calloc(2 * count + 1, sizeof(*words));
	*claim = (Dra__PreparedClaim)DRA__PREPARED_CLAIM__INIT;
	claim->error = text(from->error ? from->error : "");
	claim->devices = new_list(count, sizeof(**claim->devices));
	*ret_words = words;
	if (!claim->devices || !words)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++, words += 2) {
		Dra__Device *d = claim->devices[i];
		*d = (Dra__Device)DRA__DEVICE__INIT;
		words[0] = text(from->device[i].request);
		words[1] = text(from->cdi_id);
		d->request_names = words;
		d->n_request_names = 1;
		d->pool_name = text(from->device[i].pool);
		d->device_name = text(from->device[i].device);
		d->cdi_device_ids = words + 1;
		d->n_cdi_device_ids = 1;
	}
	claim->n_devices = count;
	return 0;
}

struct grpc_message *dra_message_prepared(const struct dra_outcome *outcome, size_t count)
{
	Dra__PrepareResponse r = DRA__PREPARE_RESPONSE__INIT;
	cleanup_free Dra__PreparedClaim *claim = calloc(count + 1, sizeof(*claim));
	cleanup_free char ***words = calloc(count + 1, sizeof(*words));
	cleanup_free Dra__PrepareResponse__ClaimsEntry **list = new_list(count, sizeof(**list));
	struct grpc_message *m = NULL;
	int e = claim && words && list ? 0 : -ENOMEM;
	for (size_t i = 0; e >= 0 && i < count; i++) {
		e = translate(&outcome[i], &claim[i], &words[i]);
		*list[i] =
			(Dra__PrepareResponse__ClaimsEntry)DRA__PREPARE_RESPONSE__CLAIMS_ENTRY__INIT;
		list[i]->key = text(outcome[i].uid);
		list[i]->value = &claim[i];
	}
	r.claims = list;
	r.n_claims = count;
	if (e >= 0)
		m = pack(&r.base);
	for (size_t i = 0; claim && words && i < count; i++) {
		free(claim[i].devices);
		free(words[i]);
	}
	return m;
}

struct grpc_message *dra_message_unprepared(const struct dra_outcome *outcome, size_t count)
{
	Dra__UnprepareResponse r = DRA__UNPREPARE_RESPONSE__INIT;
	cleanup_free Dra__UnpreparedClaim *claim = calloc(count + 1, sizeof(*claim));
	cleanup_free Dra__UnprepareResponse__ClaimsEntry **list = new_list(count, sizeof(**list));
	if (!claim || !list)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		claim[i] = (Dra__UnpreparedClaim)DRA__UNPREPARED_CLAIM__INIT;
		claim[i].error = text(outcome[i].error ? outcome[i].error : "");
		*list[i] = (Dra__UnprepareResponse__ClaimsEntry)
			DRA__UNPREPARE_RESPONSE__CLAIMS_ENTRY__INIT;
		list[i]->key = text(outcome[i].uid);
		list[i]->value = &claim[i];
	}
	r.claims = list;
	r.n_claims = count;
	return pack(&r.base);
}
