#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/dra/resource_claim.h"

#define META "\"metadata\":{\"uid\":\"u-1\"}"
#define ALLOCATED(results, config) \
	"{" META ",\"status\":{\"allocation\":{\"devices\":{\"results\":[" results \
	"],\"config\":[" config "]}}}}"
#define RESULT(request, device, more) \
	"{\"driver\":\"gpu.allot.dev\",\"pool\":\"n\",\"request\":\"" request \
	"\",\"device\":\"" device "\"" more "}"
#define SHARE(memory, cores) \
	",\"consumedCapacity\":{\"memory\":\"" memory "\",\"cores\":\"" cores "\"}"
#define TERMS(requests, fields) \
	"{\"source\":\"FromClass\",\"requests\":[" requests \
	"],\"opaque\":{\"driver\":\"gpu.allot.dev\",\"parameters\":{\"apiVersion\":\"gpu.allot.dev/" \
	"v1\",\"kind\":\"GpuTerms\"," fields "}}}"

static int read(const char *text, struct dra_claim *ret, struct error *err)
{
	json_t *object = json_loads(text, 0, NULL);
	assert_non_null(object);
	int r = dra_claim_read(object, ret, err);
	json_decref(object);
	return r;
}

static void test_shares(void **state)
{
	struct dra_claim claim;
	assert_int_equal(
		read(ALLOCATED(
			     RESULT("a", "gpu-1",
				    SHARE("16000Mi",
					  "30")) ","
						 "{\"driver\":\"other.example\",\"request\":\"o\",\"pool\":\"n\",\"device\":\"d\"}," RESULT(
							 "b/small", "gpu-2",
							 ",\"consumedCapacity\":{\"gpu.allot.dev/memory\":\"1Gi\"}"),
			     ""),
		     &claim, NULL),
		0);
	assert_string_equal(claim.uid, "u-1");
	assert_int_equal(claim.count, 2);
	assert_string_equal(claim.result[0].device, "gpu-1");
	assert_string_equal(claim.result[0].pool, "n");
	assert_int_equal(claim.result[0].memory_bytes, UINT64_C(16000) << 20);
	assert_true(claim.result[0].cores_pct == 30 && !claim.result[0].is_whole);
	assert_string_equal(claim.result[1].request, "b/small");
	assert_int_equal(claim.result[1].memory_bytes, UINT64_C(1) << 30);
	assert_true(claim.result[1].cores_pct == 0);
	dra_claim_free(&claim);
}

/* A cluster that counts no shares gives whole devices; a claim that is not allocated has none. */
static void test_whole_and_none(void **state)
{
	struct dra_claim claim;
	assert_int_equal(read(ALLOCATED(RESULT("a", "gpu-1", ""), ""), &claim, NULL), 0);
	assert_true(claim.count == 1 && claim.result[0].is_whole);
	dra_claim_free(&claim);
	assert_int_equal(read("{" META "}", &claim, NULL), 0);
	assert_int_equal(claim.count, 0);
	dra_claim_free(&claim);
}

/* Of all requests, of one, of the request whose alternative was taken; another driver's are not looked at. */
static void test_whose_terms(void **state)
{
	struct dra_claim claim;
	assert_int_equal(
		read(ALLOCATED(
			     RESULT("a", "gpu-1", "") "," RESULT("b/small", "gpu-2", ""),
			     TERMS("", "\"priority\":1") "," TERMS("\"a\"", "\"priority\":2,\"coresLimit\":40") "," TERMS(
				     "\"b\"",
				     "\"onFull\":\"wait\"") "," TERMS("\"b/small\"",
								      "\"coresLimit\":50") ","
											   "{\"opaque\":{\"driver\":\"other.example\",\"parameters\":{\"x\":1}}}"),
		     &claim, NULL),
		0);
	assert_int_equal(claim.result[0].terms.priority, 2);
	assert_true(claim.result[0].terms.cores_limit_pct == 40);
	assert_string_equal(claim.result[0].terms.on_full, "");
	assert_int_equal(claim.result[1].terms.priority, 1);
	assert_string_equal(claim.result[1].terms.on_full, "wait");
	assert_true(claim.result[1].terms.cores_limit_pct == 50);
	dra_claim_free(&claim);
}

static void test_refused(void **state)
{
	static const char *const rows[][2] = {
		{ "{}", "no uid" },
		{ ALLOCATED("{\"driver\":\"gpu.allot.dev\"}", ""),
		  "without a request, pool or device name" },
		{ ALLOCATED(RESULT("a", "g", ",\"adminAccess\":true"), ""),
		  "request a: adminAccess is not offered" },
		{ ALLOCATED(RESULT("a", "g", SHARE("0", "1")), ""),
		  "request a: memory: must be above 0" },
		{ ALLOCATED(RESULT("a", "g", SHARE("-1", "1")), ""), "request a: memory: '-1'" },
		{ ALLOCATED(RESULT("a", "g", SHARE("1Gi", "101")), ""), "request a: cores: '101'" },
		{ ALLOCATED(RESULT("a", "g", SHARE("1Gi", "1500m")), ""),
		  "request a: cores: '1500m'" },
		{ ALLOCATED(RESULT("a", "g", ""), TERMS("", "\"x\":1")),
		  "request a: GpuTerms: x: there is no such field" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dra_claim claim;
		struct error err = { 0 };
		assert_int_equal(read(rows[i][0], &claim, &err), -22);
		if (!strstr(err.text, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_whole_and_none),
		cmocka_unit_test(test_whose_terms),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
