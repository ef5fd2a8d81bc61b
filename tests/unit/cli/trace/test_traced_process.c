/* What a process recorded, as events of its threads. */
#include "written.h"

#include <stdlib.h>

#include "cli/trace/traced_process.h"
#include "ring.h"

static struct trace_ring *ring;
static int ring_fd;
static struct traced_process *process;
static struct out out;
static struct trace_sums sums;
static const unsigned devices[] = { 3, 5 };
static struct tick_map map;
static struct trace_scene scene = { .out = &out,
				    .map = &map,
				    .device = devices,
				    .device_count = 2,
				    .end_ns = UINT64_MAX,
				    .sums = &sums };

static int setup(void **state)
{
	struct error err;
	ring = ring_make(&ring_fd);
	process = calloc(1, sizeof(*process));
	sums = (struct trace_sums){ 0 };
	scene.end_ns = UINT64_MAX;
	if (tick_map_begin(&map, 1000, 0) < 0 || tick_map_add(&map, 2000, 1000) < 0)
		return -1;
	process->pid = 77;
	strcpy(process->command, "train");
	return ring_reader_open(ring_fd, &process->reader, &err);
}

static int teardown(void **state)
{
	traced_process_end(process);
	free(process);
	tick_map_clear(&map);
	ring_drop(ring, ring_fd);
	return 0;
}

static void put(struct trace_event e)
{
	e.thread = e.thread ? e.thread : 78;
	trace_ring_write(ring, atomic_fetch_add(&ring->next, 1) + 1, &e);
}

static void name(enum trace_name_kind kind, uint64_t key, const char *text)
{
	struct trace_name *n = &ring->name[ring->name_count];
	n->kind = (uint32_t)kind;
	n->key = key;
	strcpy(n->text, text);
	n->is_written = 1;
	ring->name_count++;
}

static json_t *write_all(void)
{
	written_begin(&out);
	traced_process_begin(process, &out);
	assert_int_equal(traced_process_write(process, &scene, 1, true), 0);
	return written_end(&out);
}

static void test_work(void **state)
{
	name(TRACE_NAMES_THREAD, 78, "main");
	name(TRACE_NAMES_FUNCTION, 0xf0, "saxpy");
	name(TRACE_NAMES_ENTRY, 0xe0, "cuMemcpyHtoDAsync_v2");
	put((struct trace_event){ .kind = TRACE_KERNEL,
				  .begin = 1100,
				  .end = 1150,
				  .device = 1,
				  .subject = 0xf0,
				  .object = 0x5000,
				  .amount = 132,
				  .extra = 256,
				  .flags = TRACE_LEASED });
	put((struct trace_event){
		.kind = TRACE_KERNEL, .begin = 1200, .end = 1210, .subject = 0xf1, .code = 1 });
	put((struct trace_event){ .kind = TRACE_GRAPH,
				  .begin = 1300,
				  .end = 1310,
				  .subject = 9,
				  .flags = TRACE_PER_THREAD });
	put((struct trace_event){ .kind = TRACE_COPY,
				  .begin = 1400,
				  .end = 1410,
				  .subject = 0xe0,
				  .amount = 4096,
				  .object = 2 });
	json_t *all = write_all();
	const json_t *e = find_event(all, "X", "saxpy", 0);
	assert_non_null(e);
	assert_true(number_of(e, "ts") == 0.1 && number_of(e, "dur") == 0.05);
	assert_int_equal(number_of(e, "pid"), 77);
	assert_int_equal(number_of(e, "tid"), 78);
	assert_int_equal(number_of(e, "gpu"), 5);
	assert_int_equal(number_of(e, "stream"), 1);
	assert_int_equal(number_of(e, "blocks"), 132);
	assert_int_equal(number_of(e, "threads"), 256);
	e = find_event(all, "X", "kernel 0xf1", 0);
	assert_int_equal(number_of(e, "error"), 1);
	assert_string_equal(text_of(e, "stream"), "default");
	assert_string_equal(text_of(find_event(all, "X", "graph", 0), "stream"), "per-thread");
	e = find_event(all, "X", "cuMemcpyHtoDAsync_v2", 0);
	assert_int_equal(number_of(e, "bytes"), 4096);
	assert_string_equal(text_of(find_event(all, "M", "thread_name", 0), "name"), "main");
	assert_string_equal(text_of(find_event(all, "M", "process_name", 0), "name"), "train");
	assert_int_equal(sums.work, 4);
	assert_int_equal(sums.launches, 3);
	json_decref(all);
}

/* Of most launches in free run nobody looks how long they take: they are as long as the shortest that are known, and say so. */
static void test_untimed_launches(void **state)
{
	const uint64_t ends[] = { 1100, 1240, 1310, 1400, 1580, 1600 };

	for (uint64_t i = 0; i < 6; i++)
		put((struct trace_event){ .kind = TRACE_KERNEL,
					  .begin = 1100 + 100 * i,
					  .end = ends[i],
					  .subject = 0xf0 + i });
	/* A turn's first launch is no measure. */
	put((struct trace_event){ .kind = TRACE_KERNEL,
				  .begin = 1700,
				  .end = 1701,
				  .subject = 0xf6,
				  .flags = TRACE_LEASED });
	put((struct trace_event){
		.kind = TRACE_KERNEL, .begin = 1800, .end = 1800, .subject = 0xf7 });
	/* No longer than until the thread's next begins, or what it is within ends. */
	put((struct trace_event){
		.kind = TRACE_KERNEL, .begin = 1804, .end = 1804, .subject = 0xf8 });
	put((struct trace_event){ .kind = TRACE_COPY, .begin = 1802, .end = 1806, .subject = 0xe0 });
	put((struct trace_event){
		.kind = TRACE_KERNEL, .begin = 1900, .end = 1900, .subject = 0xf9 });
	json_t *all = write_all();
	assert_true(number_of(find_event(all, "X", "kernel 0xf0", 0), "dur") == 0);
	assert_true(number_of(find_event(all, "X", "kernel 0xf1", 0), "dur") == 0.04);
	assert_true(number_of(find_event(all, "X", "kernel 0xf2", 0), "dur") == 0.01);
	assert_true(number_of(find_event(all, "X", "kernel 0xf3", 0), "dur") == 0.01);
	assert_true(number_of(find_event(all, "X", "kernel 0xf4", 0), "dur") == 0.08);
	assert_true(number_of(find_event(all, "X", "kernel 0xf5", 0), "dur") < 0.02);
	assert_true(number_of(find_event(all, "X", "kernel 0xf7", 0), "dur") == 0.004);
	assert_true(number_of(find_event(all, "X", "kernel 0xf8", 0), "dur") == 0.002);
	assert_true(number_of(find_event(all, "X", "kernel 0xf9", 0), "dur") > 0.005);
	const json_t *args = json_object_get(find_event(all, "X", "kernel 0xf3", 0), "args");
	assert_true(json_is_true(json_object_get(args, "untimed")));
	args = json_object_get(find_event(all, "X", "kernel 0xf4", 0), "args");
	assert_null(json_object_get(args, "untimed"));
	assert_int_equal(sums.launches, 10);
	json_decref(all);
}

/* Threads 78 and 142 have the same slot. Only a thread's own next event bounds its kernel. */
static void test_untimed_launches_of_two_threads(void **state)
{
	put((struct trace_event){
		.kind = TRACE_KERNEL, .begin = 1200, .end = 1240, .subject = 0xf0 });
	put((struct trace_event){
		.kind = TRACE_KERNEL, .begin = 1300, .end = 1300, .subject = 0xf1 });
	put((struct trace_event){
		.kind = TRACE_KERNEL, .begin = 1310, .end = 1310, .subject = 0xf2, .thread = 142 });
	put((struct trace_event){ .kind = TRACE_COPY, .begin = 1315, .end = 1316, .subject = 0xe0 });
	put((struct trace_event){
		.kind = TRACE_COPY, .begin = 1320, .end = 1321, .subject = 0xe0, .thread = 142 });
	json_t *all = write_all();
	assert_true(number_of(find_event(all, "X", "kernel 0xf1", 0), "dur") == 0.04);
	assert_true(number_of(find_event(all, "X", "kernel 0xf2", 0), "dur") == 0.01);
	json_decref(all);
}

static void test_waits_memory_and_moves(void **state)
{
	put((struct trace_event){ .kind = TRACE_GATE_WAIT,
				  .begin = 1100,
				  .end = 1200,
				  .amount = TRACE_WAIT_LEASE | TRACE_WAIT_DEPTH });
	put((struct trace_event){
		.kind = TRACE_GATE_WAIT, .begin = 1200, .end = 1300, .amount = TRACE_WAIT_DEPTH });
	put((struct trace_event){
		.kind = TRACE_MEMORY_WAIT, .begin = 1300, .end = 1400, .amount = 4096, .code = 12 });
	put((struct trace_event){
		.kind = TRACE_ALLOC, .begin = 1400, .end = 1400, .subject = 0x7000, .amount = 4096 });
	put((struct trace_event){
		.kind = TRACE_FREE, .begin = 1500, .end = 1500, .subject = 0x7000 });
	put((struct trace_event){
		.kind = TRACE_DENIED, .begin = 1500, .end = 1500, .device = 16, .amount = 1 << 30 });
	put((struct trace_event){ .kind = TRACE_USED, .begin = 1500, .end = 1500, .amount = 8192 });
	put((struct trace_event){
		.kind = TRACE_SWAP_OUT, .begin = 1600, .end = 1700, .amount = 8192 });
	json_t *all = write_all();
	assert_non_null(find_event(all, "X", "wait: lease", 0));
	assert_non_null(find_event(all, "X", "wait: own work", 0));
	const json_t *e = find_event(all, "X", "wait: memory", 0);
	assert_true(json_is_false(json_object_get(json_object_get(e, "args"), "granted")));
	e = find_event(all, "i", "allocate", 0);
	assert_int_equal(number_of(e, "bytes"), 4096);
	assert_string_equal(text_of(e, "address"), "0x7000");
	assert_null(
		json_object_get(json_object_get(find_event(all, "i", "free", 0), "args"), "bytes"));
	assert_string_equal(text_of(find_event(all, "i", "allocation denied", 0), "of"), "host");
	assert_int_equal(number_of(find_event(all, "C", "memory, GPU 3", 0), "bytes"), 8192);
	e = find_event(all, "X", "swap out", 0);
	assert_true(number_of(e, "dur") == 0.1);
	assert_true(json_is_true(json_object_get(json_object_get(e, "args"), "moved")));
	assert_int_equal(sums.gate_waits, 2);
	assert_int_equal(sums.memory_waits, 1);
	assert_int_equal(sums.denied, 1);
	json_decref(all);
}

/* What began before the trace begins with it; what is all outside of it is left out. */
static void test_the_edges(void **state)
{
	put((struct trace_event){ .kind = TRACE_KERNEL, .begin = 900, .end = 950, .subject = 1 });
	put((struct trace_event){ .kind = TRACE_KERNEL, .begin = 900, .end = 1050, .subject = 2 });
	put((struct trace_event){ .kind = TRACE_KERNEL, .begin = 1500, .end = 1600, .subject = 3 });
	put((struct trace_event){ .kind = TRACE_KERNEL, .begin = 1501, .end = 1600, .subject = 4 });
	scene.end_ns = 500;
	json_t *all = write_all();
	assert_null(find_event(all, "X", "kernel 0x1", 0));
	const json_t *e = find_event(all, "X", "kernel 0x2", 0);
	assert_true(number_of(e, "ts") == 0.0 && number_of(e, "dur") == 0.05);
	assert_non_null(find_event(all, "X", "kernel 0x3", 0));
	assert_null(find_event(all, "X", "kernel 0x4", 0));
	assert_int_equal(sums.launches, 2);
	json_decref(all);
}

/* Of two rounds, between which the daemon reads a moment late: a kernel of the second begins where one of the first ended. */
static void test_slices_of_two_rounds_do_not_overlap(void **state)
{
	put((struct trace_event){ .kind = TRACE_KERNEL, .begin = 1990, .end = 2090, .subject = 1 });
	written_begin(&out);
	traced_process_begin(process, &out);
	assert_int_equal(traced_process_write(process, &scene, 1, false), 0);
	put((struct trace_event){ .kind = TRACE_KERNEL, .begin = 2090, .end = 2090, .subject = 2 });
	put((struct trace_event){ .kind = TRACE_KERNEL, .begin = 2900, .end = 2950, .subject = 3 });
	assert_int_equal(tick_map_add(&map, 3000, 1900), 0);
	assert_int_equal(traced_process_write(process, &scene, 2, true), 0);
	json_t *all = written_end(&out);
	const json_t *before = find_event(all, "X", "kernel 0x1", 0);
	const json_t *after = find_event(all, "X", "kernel 0x2", 0);
	assert_true(number_of(before, "ts") + number_of(before, "dur") <=
		    number_of(after, "ts") + 0.0015);
	assert_int_equal(sums.launches, 3);
	json_decref(all);
}

/* A process that lies makes a strange picture of itself, and JSON all the same. */
static void test_noise(void **state)
{
	uint32_t noise = 1;
	unsigned char *bytes = (unsigned char *)ring->place;
	for (size_t i = 0; i < 4000 * sizeof(struct trace_place); i++) {
		noise = noise * 1664525 + 1013904223;
		bytes[i] = (unsigned char)(noise >> 24);
	}
	for (uint64_t i = 1; i < 4000; i++) {
		struct trace_place *p = &ring->place[i];
		atomic_store(&p->number, i);
		/* Half of them pass as events. */
		if (i % 2) {
			p->word[1] = p->word[0] | UINT64_C(1) << 63;
			((unsigned char *)p->word)[offsetof(struct trace_event, kind)] =
				(unsigned char)(1 + i % (TRACE_KINDS - 1));
		}
	}
	atomic_store(&ring->next, 3999);
	memset(ring->name[0].text, 0xff, TRACE_NAME_MAX);
	ring->name[0].kind = TRACE_NAMES_THREAD;
	ring->name[0].is_written = ring->name_count = 1;
	json_t *all = write_all();
	assert_true(json_array_size(events_of(all)) > 3);
	assert_true(sums.lost > 0);
	json_decref(all);
}

#define process_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		process_test(test_work),
		process_test(test_untimed_launches),
		process_test(test_untimed_launches_of_two_threads),
		process_test(test_waits_memory_and_moves),
		process_test(test_the_edges),
		process_test(test_slices_of_two_rounds_do_not_overlap),
		process_test(test_noise),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
