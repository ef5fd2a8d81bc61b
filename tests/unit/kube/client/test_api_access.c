#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kube/client/api_access.h"
#include "kube/util/base64.h"

static char dir[] = "/tmp/allot-access-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = { "config", "ca.crt", "token",
					     "c.crt",  "c.key",  "namespace" };
	char path[128];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

/* A kubeconfig in the usual layout, with these lines for cluster and user. */
static int read_config(const char *cluster, const char *user, struct kube_access *ret,
		       struct error *err)
{
	char text[4096], path[128];
	snprintf(text, sizeof(text),
		 "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n%s  name: k\ncontexts:\n"
		 "- context:\n    cluster: k\n    user: u\n  name: u@k\ncurrent-context: "
		 "u@k\nusers:\n"
		 "- name: other\n  user:\n    exec: {}\n- name: u\n  user:\n%s",
		 cluster, user);
	put("config", text);
	snprintf(path, sizeof(path), "%s/config", dir);
	return access_read_config(path, ret, err);
}

#define SERVER "    server: https://10.0.0.1:6443/\n"

static void test_token(void **state)
{
	struct kube_access a;
	struct error err = { 0 };
	if (read_config("    certificate-authority-data: Y2VydGlmaWNhdGU=\n" SERVER,
			"    token: abc\n", &a, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(a.server, "https://10.0.0.1:6443");
	assert_string_equal(a.ca_pem, "certificate");
	assert_string_equal(a.token, "abc");
	assert_null(a.token_file);
	assert_null(a.key_pem);
	assert_false(a.is_unverified);
	access_free(&a);
}

static void test_files(void **state)
{
	struct kube_access a;
	struct error err = { 0 };
	char path[128];
	put("ca.crt", "authority\n");
	put("c.crt", "certificate\n");
	put("c.key", "key\n");
	if (read_config("    certificate-authority: ca.crt\n    insecure-skip-tls-verify: "
			"true\n" SERVER,
			"    client-certificate: c.crt\n    client-key: c.key\n    tokenFile: token\n",
			&a, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(a.ca_pem, "authority");
	assert_string_equal(a.certificate_pem, "certificate");
	assert_string_equal(a.key_pem, "key");
	snprintf(path, sizeof(path), "%s/token", dir);
	assert_string_equal(a.token_file, path);
	assert_true(a.is_unverified);
	access_free(&a);
}

static void bad(const char *cluster, const char *user, const char *why)
{
	struct kube_access a = { 0 };
	struct error err;
	assert_true(read_config(cluster, user, &a, &err) < 0);
	assert_null(a.server);
	if (!strstr(err.text, why) || !strstr(err.text, dir))
		fail_msg("%s", err.text);
}

static void test_bad(void **state)
{
	bad("    x: y\n", "    token: t\n", "clusters 'k': server: ''");
	bad("    server: 10.0.0.1\n", "    token: t\n", "server: '10.0.0.1': must be https://");
	bad(SERVER "    proxy-url: http://p\n", "    token: t\n", "proxy-url: is not supported");
	bad(SERVER "    certificate-authority-data: '%'\n", "    token: t\n",
	    "clusters 'k': certificate-authority-data: must be a string in base64");
	bad(SERVER "    certificate-authority: none\n", "    token: t\n", "certificate-authority: ");
	bad(SERVER "    insecure-skip-tls-verify: 1\n", "    token: t\n",
	    "insecure-skip-tls-verify");
	bad(SERVER, "    x: y\n", "users 'u': must have a token, a tokenFile or");
	bad(SERVER, "    token:\n      x: y\n", "users 'u': token: must be a string");
	bad(SERVER, "    exec:\n      command: aws\n", "users 'u': exec: is not supported");
	bad(SERVER, "    auth-provider:\n      name: gcp\n", "users 'u': auth-provider: is not");
	bad(SERVER, "    client-key-data: a2V5\n",
	    "client-certificate is missing, but client-key is given");
	bad(SERVER, "    client-certificate-data: a2V5\n", "client-key is missing, but");
	bad("    a b\n", "    token: t\n", "line 5: must be 'key: value'");
}

static void test_bad_context(void **state)
{
	struct kube_access a;
	struct error err;
	char path[128];
	snprintf(path, sizeof(path), "%s/config", dir);
	put("config", "clusters: []\n");
	assert_true(access_read_config(path, &a, &err) < 0);
	assert_non_null(strstr(err.text, "current-context: missing"));
	put("config", "current-context: x\n");
	assert_true(access_read_config(path, &a, &err) < 0);
	assert_non_null(strstr(err.text, "contexts: no entry is named 'x'"));
	put("config", "current-context: x\ncontexts:\n- name: x\n  context:\n    cluster: c\n");
	assert_true(access_read_config(path, &a, &err) < 0);
	assert_non_null(strstr(err.text, "contexts 'x': user: missing"));
	assert_int_equal(access_read_config("/nowhere/config", &a, &err), -2);
}

static void test_pod(void **state)
{
	struct kube_access a;
	struct error err = { 0 };
	put("ca.crt", "authority\n");
	put("token", "secret\n");
	if (access_of_pod("fd00::1", "443", dir, &a, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(a.server, "https://[fd00::1]:443");
	assert_string_equal(a.ca_pem, "authority");
	assert_null(a.token);
	assert_non_null(strstr(a.token_file, "/token"));
	assert_null(a.in_namespace);
	access_free(&a);
	put("namespace", "team\n");
	assert_int_equal(access_of_pod("10.0.0.1", "443", dir, &a, &err), 0);
	assert_string_equal(a.in_namespace, "team");
	access_free(&a);
	assert_int_equal(access_of_pod(NULL, "443", dir, &a, &err), -2);
	assert_non_null(strstr(err.text, "does not run in a pod"));
	put("token", "\n");
	assert_int_equal(access_of_pod("10.0.0.1", "443", dir, &a, &err), -22);
	assert_non_null(strstr(err.text, "service account: "));
}

/* Of the context; it may say none. */
static void test_namespace(void **state)
{
	char path[128];
	struct kube_access a;
	struct error err;
	snprintf(path, sizeof(path), "%s/config", dir);
	assert_int_equal(read_config(SERVER, "    token: t\n", &a, &err), 0);
	assert_null(a.in_namespace);
	access_free(&a);
	put("config", "clusters:\n- name: k\n  cluster:\n    server: https://10.0.0.1\ncontexts:\n"
		      "- name: c\n  context:\n    cluster: k\n    user: u\n    namespace: team\n"
		      "current-context: c\nusers:\n- name: u\n  user:\n    token: t\n");
	assert_int_equal(access_read_config(path, &a, &err), 0);
	assert_string_equal(a.in_namespace, "team");
	access_free(&a);
}

static void test_base64(void **state)
{
	static const struct {
		const char *from, *to;
	} good[] = { { "YQ==", "a" }, { "YWI=", "ab" }, { "YWJj", "abc" } };
	static const char *const wrong[] = { "", "Y", "YQ", "YQ=", "YQ=a", "Y===", "YW Jj", "AGE=" };
	for (size_t i = 0; i < 3; i++) {
		char *text = NULL;
		assert_int_equal(base64_decode(good[i].from, &text), 0);
		assert_string_equal(text, good[i].to);
		free(text);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *text = NULL;
		assert_int_equal(base64_decode(wrong[i], &text), -22);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_token),     cmocka_unit_test(test_files),
		cmocka_unit_test(test_bad),       cmocka_unit_test(test_bad_context),
		cmocka_unit_test(test_pod),       cmocka_unit_test(test_base64),
		cmocka_unit_test(test_namespace),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
