/* The kubelet's calls to a DRA driver, in bytes; and keys of claims. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "daemon/kubelet/devices/dra_key.h"
#include "daemon/kubelet/dra/dra_messages.h"
#include "daemon/kubelet/proto/dra.pb-c.h"

static uint8_t bytes[128 * 1024];

static size_t pack(const char *in_namespace, const char *uid, const char *name, size_t count)
{
	Dra__Claim claim = DRA__CLAIM__INIT, *list[DRA_MOST_CLAIMS + 1];
	Dra__ClaimsRequest request = DRA__CLAIMS_REQUEST__INIT;
	claim.namespace_ = (char *)(uintptr_t)in_namespace;
	claim.uid = (char *)(uintptr_t)uid;
	claim.name = (char *)(uintptr_t)name;
	for (size_t i = 0; i < count; i++)
		list[i] = &claim;
	request.claims = list;
	request.n_claims = count;
	assert_true(dra__claims_request__get_packed_size(&request) <= sizeof(bytes));
	return dra__claims_request__pack(&request, bytes);
}

static void test_names(void **state)
{
	struct dra_request request;
	size_t size = pack("team", "12-ab", "train.gpu", 2);
	assert_int_equal(dra_request_read(bytes, size, &request), 0);
	assert_int_equal(request.count, 2);
	assert_string_equal(request.name[1].in_namespace, "team");
	assert_string_equal(request.name[1].uid, "12-ab");
	assert_string_equal(request.name[1].name, "train.gpu");
	dra_request_free(&request);
	assert_int_equal(dra_request_read(bytes, 0, &request), 0);
	assert_int_equal(request.count, 0);
	dra_request_free(&request);
}

static void refused(size_t size, int why)
{
	struct dra_request request;
	assert_int_equal(dra_request_read(bytes, size, &request), -why);
	dra_request_free(&request);
}

static void test_refused(void **state)
{
	char long_name[300];
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	refused(pack("team", "12", "train", DRA_MOST_CLAIMS + 1), E2BIG);
	refused(pack("", "12", "train", 1), EINVAL);
	refused(pack("team", "../x", "train", 1), EINVAL);
	refused(pack("team", "12", "a/b", 1), EINVAL);
	refused(pack("team", "12", "A", 1), EINVAL);
	refused(pack("team", "12", long_name, 1), EINVAL);
	refused(pack("team", "12", "..", 1), EINVAL);
	memcpy(bytes, "\x0a\x7f", 2);
	refused(2, EPROTO);
}

static void test_status(void **state)
{
	Dra__RegistrationStatus status = DRA__REGISTRATION_STATUS__INIT;
	char *why = NULL;
	status.error = (char *)(uintptr_t) "no room";
	assert_int_equal(
		dra_status_read(bytes, dra__registration_status__pack(&status, bytes), &why), 0);
	assert_string_equal(why, "no room");
	free(why);
	why = NULL;
	status.plugin_registered = 1;
	assert_int_equal(
		dra_status_read(bytes, dra__registration_status__pack(&status, bytes), &why), 0);
	assert_null(why);
}

/* A claim that failed has no devices in the answer. */
static void test_prepared(void **state)
{
	const struct dra_prepared_device devices[] = { { "n1", "gpu-1", "a" },
						       { "n1", "gpu-2", "b" } };
	const struct dra_outcome outcomes[] = {
		{ .uid = "1", .cdi_id = "allot.dev/claim=1", .device = devices, .count = 2 },
		{ .uid = "2",
		  .error = "no",
		  .cdi_id = "allot.dev/claim=2",
		  .device = devices,
		  .count = 2 },
	};
	uint8_t expected[1024];
	Dra__PrepareResponse *read;
	struct grpc_message *message = dra_message_prepared(outcomes, 2);
	/* Up to its length: gRPC messages do not state it, so it is computed by the same rules. */
	Dra__Device device[2] = { DRA__DEVICE__INIT, DRA__DEVICE__INIT },
		    *list[] = { &device[0], &device[1] };
	Dra__PreparedClaim claim[2] = { DRA__PREPARED_CLAIM__INIT, DRA__PREPARED_CLAIM__INIT };
	Dra__PrepareResponse__ClaimsEntry entry[2] = { DRA__PREPARE_RESPONSE__CLAIMS_ENTRY__INIT,
						       DRA__PREPARE_RESPONSE__CLAIMS_ENTRY__INIT };
	Dra__PrepareResponse__ClaimsEntry *entries[] = { &entry[0], &entry[1] };
	Dra__PrepareResponse response = DRA__PREPARE_RESPONSE__INIT;
	char *words[] = { (char *)(uintptr_t) "a", (char *)(uintptr_t) "b",
			  (char *)(uintptr_t) "allot.dev/claim=1" };
	for (size_t i = 0; i < 2; i++) {
		device[i].request_names = &words[i];
		device[i].n_request_names = 1;
		device[i].pool_name = (char *)(uintptr_t) "n1";
		device[i].device_name = (char *)(uintptr_t)devices[i].device;
		device[i].cdi_device_ids = &words[2];
		device[i].n_cdi_device_ids = 1;
		entry[i].key = (char *)(uintptr_t)outcomes[i].uid;
		entry[i].value = &claim[i];
	}
	claim[0].devices = list;
	claim[0].n_devices = 2;
	claim[1].error = (char *)(uintptr_t) "no";
	response.claims = entries;
	response.n_claims = 2;
	size_t size = dra__prepare_response__pack(&response, expected);
	assert_memory_equal(grpc_message_data(message), expected, size);
	read = dra__prepare_response__unpack(NULL, size, grpc_message_data(message));
	assert_non_null(read);
	assert_string_equal(read->claims[1]->value->error, "no");
	dra__prepare_response__free_unpacked(read, NULL);
	grpc_message_unref(message);
}

static void test_keys(void **state)
{
	const struct dra_name name = { "team", "12-ab", "train" };
	char key[TENANT_CLAIM_MAX], long_name[254];
	struct dra_key read;
	dra_key_make(&name, key);
	assert_string_equal(key, "dra/12-ab/team/train");
	assert_true(dra_key_parse(key, &read));
	assert_string_equal(read.name.uid, "12-ab");
	assert_string_equal(read.name.in_namespace, "team");
	assert_string_equal(read.name.name, "train");
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	const struct dra_name longer = {
		"a-namespace-with-sixty-three-bytes-as-many-as-it-may-have-at-all",
		"01234567-0123-0123-0123-0123456789ab", long_name
	};
	dra_key_make(&longer, key);
	assert_string_equal(key, "dra/01234567-0123-0123-0123-0123456789ab");
	assert_true(dra_key_parse(key, &read));
	assert_string_equal(read.name.uid, longer.uid);
	assert_string_equal(read.name.name, "");
	assert_false(dra_key_parse("pod/12/main", &read));
	assert_false(dra_key_parse("dra/12/main", &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_status), cmocka_unit_test(test_prepared),
		cmocka_unit_test(test_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
