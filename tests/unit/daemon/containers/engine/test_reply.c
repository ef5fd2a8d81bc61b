/* Contents of replies, and the result for empty, too long and foreign ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/containers/engine/engine_reply.h"

#define ID "3f4c1a0b9d8e"

static int docker(const char *text, struct engine_name *ret)
{
	return engine_reply_docker(text, strlen(text), ID, ret);
}

static void test_docker(void **state)
{
	struct engine_name n = { 0 };
	assert_int_equal(docker("{\"Id\":\"" ID "\",\"Name\":\"/trainer\",\"Config\":{\"Image\":"
				"\"pytorch:2\",\"Labels\":{\"a\":\"b\"}}}",
				&n),
			 0);
	assert_string_equal(n.name, "trainer");
	assert_string_equal(n.image, "pytorch:2");
	assert_string_equal(n.pod, "");
	/* By kubelet, through cri-dockerd. */
	assert_int_equal(docker("{\"Id\":\"" ID "\",\"Name\":\"/k8s_main_p_n_u_0\",\"Config\":{"
				"\"Labels\":{\"io.kubernetes.pod.name\":\"p\",\"io.kubernetes.pod."
				"namespace\":\"n\",\"io.kubernetes.container.name\":\"main\"}}}",
				&n),
			 0);
	assert_string_equal(n.name, "main");
	assert_string_equal(n.pod, "p");
	assert_string_equal(n.namespace, "n");
	assert_string_equal(n.image, "");
}

static void test_docker_does_not_answer(void **state)
{
	struct engine_name n = { .name = "before" };
	assert_int_equal(docker("", &n), -EPROTO);
	assert_int_equal(docker("[]", &n), -EPROTO);
	assert_int_equal(docker("{\"Id\":\"" ID "\"}", &n), -EPROTO);
	assert_int_equal(docker("{\"Id\":7,\"Name\":\"/x\"}", &n), -EPROTO);
	/* A container of that name. */
	assert_int_equal(docker("{\"Id\":\"ffff\",\"Name\":\"/" ID "\"}", &n), -ENOENT);
	assert_string_equal(n.name, "before");
	assert_int_equal(docker("{\"Id\":\"" ID "\",\"Name\":\"/x\",\"Config\":7}", &n), 0);
	assert_int_equal(docker("{\"Id\":\"" ID "\",\"Name\":\"/x\",\"Config\":{\"Labels\":[1],"
				"\"Image\":{}}}",
				&n),
			 0);
}

static void test_what_is_shown_is_text(void **state)
{
	struct engine_name n = { 0 };
	char text[2048], name[1024];
	assert_int_equal(docker("{\"Id\":\"" ID "\",\"Name\":\"/a\\u001b[2J\\n\\u0085b\"}", &n), 0);
	assert_string_equal(n.name, "a?[2J???b");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text), "{\"Id\":\"" ID "\",\"Name\":\"%s\"}", name);
	assert_int_equal(docker(text, &n), 0);
	assert_int_equal(strlen(n.name), ENGINE_NAME_MAX - 1);
}

/* ---- protobuf: a writer of its own, so that both sides can't be wrong in the same way ---- */

struct message {
	unsigned char data[1024];
	size_t size;
};

static void put_bytes(struct message *m, unsigned field, const void *data, size_t size)
{
	assert_true(size < 128 && field < 16 && m->size + size + 2 < sizeof(m->data));
	m->data[m->size++] = (unsigned char)(field << 3 | 2);
	m->data[m->size++] = (unsigned char)size;
	memcpy(m->data + m->size, data, size);
	m->size += size;
}

static void put_text(struct message *m, unsigned field, const char *text)
{
	put_bytes(m, field, text, strlen(text));
}

static void put_message(struct message *m, unsigned field, const struct message *part)
{
	put_bytes(m, field, part->data, part->size);
}

static void put_pair(struct message *m, unsigned field, const char *key, const char *value)
{
	struct message pair = { .size = 0 };
	put_text(&pair, 1, key);
	put_text(&pair, 2, value);
	put_message(m, field, &pair);
}

/* Longer than one byte can state. */
static struct message wrap(unsigned field, const struct message *part)
{
	struct message m = { .size = 0 };
	assert_true(part->size < 1 << 14);
	m.data[m.size++] = (unsigned char)(field << 3 | 2);
	if (part->size >= 128)
		m.data[m.size++] = (unsigned char)(part->size | 128);
	m.data[m.size++] = (unsigned char)(part->size < 128 ? part->size : part->size >> 7);
	memcpy(m.data + m.size, part->data, part->size);
	m.size += part->size;
	return m;
}

static struct message cri_answer(void)
{
	struct message status = { .size = 0 }, metadata = { .size = 0 }, image = { .size = 0 };
	put_text(&status, 1, ID);
	put_text(&metadata, 1, "main");
	put_message(&status, 2, &metadata);
	status.data[status.size++] = 3 << 3; /* state, a number */
	status.data[status.size++] = 1;
	put_text(&image, 1, "busybox:1");
	put_message(&status, 8, &image);
	put_text(&status, 9, "sha256:0");
	put_pair(&status, 12, "io.kubernetes.pod.name", "p");
	put_pair(&status, 12, "io.kubernetes.pod.namespace", "n");
	return wrap(1, &status);
}

static void test_cri(void **state)
{
	struct engine_name n = { 0 };
	struct message m = cri_answer();
	assert_int_equal(engine_reply_cri(m.data, m.size, ID, &n), 0);
	assert_string_equal(n.name, "main");
	assert_string_equal(n.pod, "p");
	assert_string_equal(n.namespace, "n");
	assert_string_equal(n.image, "busybox:1");
	assert_int_equal(engine_reply_cri(m.data, m.size, "other", &n), -ENOENT);
	assert_int_equal(engine_reply_cri(m.data, 0, ID, &n), -EPROTO);
	size_t size = 0;
	unsigned char *request = engine_request_cri(ID, &size);
	struct message wanted = { .size = 0 };
	put_text(&wanted, 1, ID);
	assert_int_equal(size, wanted.size);
	assert_memory_equal(request, wanted.data, size);
	free(request);
}

static void test_containerd(void **state)
{
	struct engine_name n = { 0 };
	struct message c = { .size = 0 };
	put_text(&c, 1, ID);
	put_text(&c, 3, "docker.io/library/busybox:1");
	struct message m = wrap(1, &c);
	assert_int_equal(engine_reply_containerd(m.data, m.size, ID, &n), 0);
	assert_string_equal(n.name, ID);
	assert_string_equal(n.image, "docker.io/library/busybox:1");
	put_pair(&c, 2, "nerdctl/name", "web");
	m = wrap(1, &c);
	assert_int_equal(engine_reply_containerd(m.data, m.size, ID, &n), 0);
	assert_string_equal(n.name, "web");
	assert_int_equal(engine_reply_containerd(m.data, m.size, "other", &n), -ENOENT);
	size_t size = 0;
	unsigned char *request = engine_request_containerd(ID, &size);
	assert_int_equal(size, 2 + strlen(ID));
	assert_int_equal(request[0], 1 << 3 | 2);
	free(request);
}

/* Every beginning, and every byte changed to every value: no more than a wrong name may come of it. */
static void test_broken_messages(void **state)
{
	struct message m = cri_answer();
	struct engine_name n;
	for (size_t size = 0; size < m.size; size++) {
		unsigned char *copy = malloc(size + 1);
		memcpy(copy, m.data, size);
		engine_reply_cri(copy, size, ID, &n);
		engine_reply_containerd(copy, size, ID, &n);
		free(copy);
	}
	for (size_t at = 0; at < m.size; at++)
		for (unsigned value = 0; value < 256; value++) {
			struct message broken = m;
			broken.data[at] = (unsigned char)value;
			if (engine_reply_cri(broken.data, broken.size, ID, &n) >= 0)
				assert_true(strlen(n.name) < sizeof(n.name));
			engine_reply_containerd(broken.data, broken.size, ID, &n);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_docker),
		cmocka_unit_test(test_docker_does_not_answer),
		cmocka_unit_test(test_what_is_shown_is_text),
		cmocka_unit_test(test_cri),
		cmocka_unit_test(test_containerd),
		cmocka_unit_test(test_broken_messages),
	};
	return cmocka_run_group_tests_name("engine_reply", tests, NULL, NULL);
}
