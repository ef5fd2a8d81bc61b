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

/* The answer for one claim. Owns its lists. */
struct prepared {
	Dra__PreparedClaim claim;
	Dra__Device *device, **list;
	char **words; /* for each device: the name of its request, and the CDI id */
};

static void free_prepared(struct prepared *p)
{
	free(p->device);
	free(p->list);
	free(p->words);
}

static int translate(const struct dra_outcome *from, struct prepared *p)
{
	size_t count = from->error ? 0 : from->count;
	p->claim = (Dra__PreparedClaim)DRA__PREPARED_CLAIM__INIT;
	p->claim.error = text(from->error ? from->error : "");
	p->device = calloc(count + 1, sizeof(*p->device));
	p->list = calloc(count + 1, sizeof(*p->list));
	p->words = calloc(2 * count + 1, sizeof(*p->words));
	if (!p->device || !p->list || !p->words)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		Dra__Device *d = &p->device[i];
		char **words = p->words + 2 * i;
		*d = (Dra__Device)DRA__DEVICE__INIT;
		words[0] = text(from->device[i].request);
		words[1] = text(from->cdi_id);
		d->request_names = words;
		d->n_request_names = 1;
		d->pool_name = text(from->device[i].pool);
		d->device_name = text(from->device[i].device);
		d->cdi_device_ids = words + 1;
		d->n_cdi_device_ids = 1;
		p->list[i] = d;
	}
	p->claim.devices = p->list;
	p->claim.n_devices = count;
	return 0;
}

struct grpc_message *dra_message_prepared(const struct dra_outcome *outcome, size_t count)
{
	Dra__PrepareResponse r = DRA__PREPARE_RESPONSE__INIT;
	cleanup_free struct prepared *prepared = calloc(count + 1, sizeof(*prepared));
	cleanup_free Dra__PrepareResponse__ClaimsEntry *entry = calloc(count + 1, sizeof(*entry));
	cleanup_free Dra__PrepareResponse__ClaimsEntry **list = calloc(count + 1, sizeof(*list));
	struct grpc_message *m = NULL;
	int e = prepared && entry && list ? 0 : -ENOMEM;
	for (size_t i = 0; e >= 0 && i < count; i++) {
		e = translate(&outcome[i], &prepared[i]);
		entry[i] =
			(Dra__PrepareResponse__ClaimsEntry)DRA__PREPARE_RESPONSE__CLAIMS_ENTRY__INIT;
		entry[i].key = text(outcome[i].uid);
		entry[i].value = &prepared[i].claim;
		list[i] = &entry[i];
	}
	r.claims = list;
	r.n_claims = count;
	if (e >= 0)
		m = pack(&r.base);
	for (size_t i = 0; prepared && i < count; i++)
		free_prepared(&prepared[i]);
	return m;
}

struct grpc_message *dra_message_unprepared(const struct dra_outcome *outcome, size_t count)
{
	Dra__UnprepareResponse r = DRA__UNPREPARE_RESPONSE__INIT;
	cleanup_free Dra__UnpreparedClaim *claim = calloc(count + 1, sizeof(*claim));
	cleanup_free Dra__UnprepareResponse__ClaimsEntry *entry = calloc(count + 1, sizeof(*entry));
	cleanup_free Dra__UnprepareResponse__ClaimsEntry **list = calloc(count + 1, sizeof(*list));
	if (!claim || !entry || !list)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		claim[i] = (Dra__UnpreparedClaim)DRA__UNPREPARED_CLAIM__INIT;
		claim[i].error = text(outcome[i].error ? outcome[i].error : "");
		entry[i] = (Dra__UnprepareResponse__ClaimsEntry)
			DRA__UNPREPARE_RESPONSE__CLAIMS_ENTRY__INIT;
		entry[i].key = text(outcome[i].uid);
		entry[i].value = &claim[i];
		list[i] = &entry[i];
	}
	r.claims = list;
	r.n_claims = count;
	return pack(&r.base);
}
