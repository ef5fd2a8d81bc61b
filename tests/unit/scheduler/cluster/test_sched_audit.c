/* The lines of allot-scheduler's audit log. */
#include "../cluster.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "scheduler/cluster/sched_audit.h"

static char path[] = "/tmp/allot-sched-audit-XXXXXX";

/* The file's lines, from the first that is not `start`, but for version and time. To be given up. */
static json_t *lines(void)
{
	static char text[65536];
	json_t *list = json_array();
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(text, sizeof(text), file)) {
		json_t *line = object_of("%s", text);
		assert_int_equal(json_integer_value(json_object_get(line, "version")), 1);
		assert_int_equal(strlen(json_string_value(json_object_get(line, "time"))), 24);
		json_object_del(line, "version");
		json_object_del(line, "time");
		json_array_append_new(list, line);
	}
	fclose(file);
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "event")),
			    "start");
	json_array_remove(list, 0);
	return list;
}

static void assert_lines(const char *wanted)
{
	json_t *list = lines();
	char *text = json_dumps(list, JSON_COMPACT);
	assert_string_equal(text, wanted);
	free(text);
	json_decref(list);
}

static struct sched_audit *start(void)
{
	struct sched_audit *audit;
	log_set_level(0);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(sched_audit_start(path, &audit, NULL), 0);
	assert_non_null(audit);
	return audit;
}

static void test_evictions(void **state)
{
	struct sched_audit *audit = start();
	const struct sched_audit_pod of = { "ns", "p", "u", "n" };
	sched_audit_evict(audit, &of, "others use it", NULL);
	sched_audit_evict(audit, &of, "others use it", "a budget");
	assert_lines("[{\"event\":\"evict\",\"by\":{\"kind\":\"scheduler\"},\"namespace\":\"ns\","
		     "\"pod\":\"p\",\"uid\":\"u\",\"node\":\"n\",\"reason\":\"others use it\"},"
		     "{\"event\":\"evict\",\"by\":{\"kind\":\"scheduler\"},\"namespace\":\"ns\","
		     "\"pod\":\"p\",\"uid\":\"u\",\"node\":\"n\",\"reason\":\"others use it\","
		     "\"refused\":\"a budget\"}]");
	const struct sched_audit_figures figures = sched_audit_figures(audit);
	assert_int_equal(figures.lines, 3);
	assert_int_equal(figures.lost, 0);
	sched_audit_stop(audit);
	assert_lines("[{\"event\":\"evict\",\"by\":{\"kind\":\"scheduler\"},\"namespace\":\"ns\","
		     "\"pod\":\"p\",\"uid\":\"u\",\"node\":\"n\",\"reason\":\"others use it\"},"
		     "{\"event\":\"evict\",\"by\":{\"kind\":\"scheduler\"},\"namespace\":\"ns\","
		     "\"pod\":\"p\",\"uid\":\"u\",\"node\":\"n\",\"reason\":\"others use it\","
		     "\"refused\":\"a budget\"},"
		     "{\"event\":\"stop\",\"by\":{\"kind\":\"scheduler\"}}]");
}

/* Victims by name where we know them; of many nodes the first ones. */
static void test_preemptions(void **state)
{
	struct model *m = model_of_nothing();
	struct sched_audit *audit = start();
	json_t *victim = pod_object("lower", GPU);
	give_node(m, node_object("n", 1, 8192, 100));
	allocate(victim, "n", "n-0,NVIDIA,4000,0:;", "success", true);
	give_pod(m, victim);
	json_t *args = object_of("{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\","
				 "\"uid\":\"u\"}}}");
	json_t *answer = object_of("{\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[{\"UID\":"
				   "\"uid-lower\"},{\"UID\":\"cpu\"}]}}}");
	sched_audit_preempt(audit, m, args, answer);
	json_decref(answer);
	/* Nobody is a victim. */
	answer = object_of("{\"NodeNameToMetaVictims\":{}}");
	sched_audit_preempt(audit, m, args, answer);
	sched_audit_preempt(audit, m, args, NULL);
	json_decref(answer);
	assert_lines("[{\"event\":\"preempt\",\"by\":{\"kind\":\"extender\"},\"namespace\":\"ns\","
		     "\"pod\":\"p\",\"uid\":\"u\",\"victims\":{\"n\":[{\"namespace\":\"ns\","
		     "\"pod\":\"lower\",\"uid\":\"uid-lower\"},{\"uid\":\"cpu\"}]}}]");
	answer = object_of("{\"NodeNameToMetaVictims\":{}}");
	for (int i = 0; i < 20; i++) {
		char name[8];
		snprintf(name, sizeof(name), "n%d", i);
		json_object_set_new(json_object_get(answer, "NodeNameToMetaVictims"), name,
				    object_of("{\"Pods\":[]}"));
	}
	sched_audit_preempt(audit, m, args, answer);
	json_decref(answer);
	json_t *all = lines(), *last = json_array_get(all, 1);
	assert_int_equal(json_object_size(json_object_get(last, "victims")), 16);
	assert_int_equal(json_integer_value(json_object_get(last, "more_nodes")), 4);
	json_decref(all);
	json_decref(args);
	sched_audit_stop(audit);
	model_free(m);
}

static int told; /* -1: not yet; else the code */

static void done(void *data, const struct error *err)
{
	assert_ptr_equal(data, &told);
	told = err->code;
}

/* What becomes of it is known later; who asked is told all the same. */
static void test_bindings(void **state)
{
	struct sched_audit *audit = start();
	json_t *args = bind_args("p", "n");
	struct error none = { 0 }, err = { 0 };
	error_set(&err, ESTALE, "no room\n");
	for (int i = 0; i < 2; i++) {
		bind_done to = done;
		void *data = &told;
		told = -1;
		sched_audit_bind(audit, args, &to, &data);
		assert_ptr_not_equal(data, &told);
		to(data, i ? &err : &none);
		assert_int_equal(told, i ? ESTALE : 0);
	}
#define REFUSED \
	"{\"event\":\"bind\",\"by\":{\"kind\":\"extender\"},\"namespace\":\"ns\",\"pod\":\"p\"," \
	"\"uid\":\"uid-p\",\"node\":\"n\",\"refused\":\"no room?\"}"
	assert_lines("[" REFUSED "]");
	/* One that does not begin is told of by who refuses it. */
	bind_done to = done;
	void *data = &told;
	sched_audit_bind(audit, args, &to, &data);
	sched_audit_forget(audit, data);
	sched_audit_refuse(audit, args, &err);
	assert_lines("[" REFUSED "," REFUSED "]");
	/* And one that never ends is given up with the log. */
	to = done;
	data = &told;
	sched_audit_bind(audit, args, &to, &data);
	json_decref(args);
	sched_audit_stop(audit);
}

static void test_off(void **state)
{
	struct sched_audit *audit;
	const struct sched_audit_pod of = { "ns", "p", "u", "n" };
	bind_done to = done;
	void *data = &told;
	struct error err = { 0 };
	json_t *args = bind_args("p", "n");
	assert_int_equal(sched_audit_start("off", &audit, NULL), 0);
	assert_null(audit);
	sched_audit_bind(audit, args, &to, &data);
	assert_ptr_equal(data, &told);
	sched_audit_forget(audit, data);
	sched_audit_refuse(audit, args, &err);
	sched_audit_evict(audit, &of, "", NULL);
	sched_audit_preempt(audit, NULL, args, args);
	sched_audit_reopen(audit);
	assert_int_equal(sched_audit_figures(audit).lines, 0);
	assert_null(sched_audit_stop(audit));
	json_decref(args);
}

/* Starts all the same, and counts what it could not write. */
static void test_a_file_that_can_not_be(void **state)
{
	struct sched_audit *audit;
	const struct sched_audit_pod of = { "ns", "p", "u", "n" };
	assert_int_equal(sched_audit_start("/proc/none/audit.log", &audit, NULL), 0);
	sched_audit_evict(audit, &of, "", NULL);
	assert_int_equal(sched_audit_figures(audit).lines, 0);
	assert_int_equal(sched_audit_figures(audit).lost, 2);
	sched_audit_stop(audit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_evictions),
		cmocka_unit_test(test_preemptions),
		cmocka_unit_test(test_bindings),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_a_file_that_can_not_be),
	};
	int fd = mkstemp(path);
	if (fd < 0)
		return 1;
	close(fd);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
