/* What the kubelet asks of the device plugin, and of the DRA driver: by the first byte which message. */
#include "fuzz.h"

#include <errno.h>

#include "daemon/kubelet/devices/pod_resources.h"
#include "daemon/kubelet/dra/dra_messages.h"
#include "daemon/kubelet/endpoint/messages.h"

#define MOST_IDS 12

/* Of the names in corpus/plugin. */
static const struct slices slices = { .card_count = 2, .per_card = 3, .uuid = { "GPU-a", "GPU-b" } };

static unsigned count(const struct slice_set *set)
{
	unsigned n = 0;
	for (unsigned i = 0; i < SLICES_MAX_CARDS; i++) {
		FUZZ_CHECK(i < slices.card_count || !slots_count(&set->card[i]));
		FUZZ_CHECK(slots_count(&set->card[i]) <= slices.per_card);
		n += slots_count(&set->card[i]);
	}
	return n;
}

static void check_prefer(const struct message_container *c)
{
	struct slice_set available, must, chosen;
	if (slice_set_parse(&slices, c->ids, c->count, &available, NULL) < 0 ||
	    slice_set_parse(&slices, c->must, c->must_count, &must, NULL) < 0)
		return;
	FUZZ_CHECK(count(&available) == c->count && count(&must) == c->must_count);
	if (c->size < 0 ||
	    slices_prefer(&slices, &available, &must, (unsigned)c->size, &chosen, NULL) < 0)
		return;
	FUZZ_CHECK(count(&chosen) == (unsigned)c->size);
	struct grpc_message *m = message_preferred(&slices, &chosen, 1);
	FUZZ_CHECK(m);
	grpc_message_unref(m);
}

/* Names that are taken can stand in a path and in a key, which says them again. */
static void check_claims(const uint8_t *data, size_t size)
{
	struct dra_request request;
	int r = dra_request_read(data, size, &request);
	FUZZ_CHECK(r == 0 || r == -EPROTO || r == -E2BIG || r == -EINVAL);
	for (size_t i = 0; r == 0 && i < request.count; i++) {
		char text[TENANT_CLAIM_MAX], path[DRA_CLAIM_PATH_MAX];
		struct dra_key key;
		dra_key_make(&request.name[i], text);
		FUZZ_CHECK(dra_key_parse(text, &key) && !strcmp(key.name.uid, request.name[i].uid));
		FUZZ_CHECK(!*key.name.name || !strcmp(key.name.name, request.name[i].name));
		dra_claim_path(&request.name[i], path);
		FUZZ_CHECK(!strstr(path, "/../") && strlen(path) < DRA_CLAIM_PATH_MAX - 1);
	}
	dra_request_free(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const readers[])(const uint8_t *bytes, size_t n, size_t most_ids,
				      struct message_request *ret) = { message_read_preferred,
								       message_read_allocate,
								       message_read_pre_start };
	struct message_request request;
	struct slice_set set;
	if (size < 1)
		return 0;
	if (data[0] == 4) {
		check_claims(data + 1, size - 1);
		return 0;
	}
	if (data[0] % 4 == 3) {
		if (pod_resources_read(&slices, "a/b", data + 1, size - 1, &set) == 0)
			count(&set);
		return 0;
	}
	int r = readers[data[0] % 4](data + 1, size - 1, MOST_IDS, &request);
	FUZZ_CHECK(r == 0 || r == -EPROTO || r == -E2BIG);
	for (size_t i = 0; r == 0 && i < request.count; i++)
		check_prefer(&request.container[i]);
	message_request_free(&request);
	return 0;
}
