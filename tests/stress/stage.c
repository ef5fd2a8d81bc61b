#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "library/registration_client.h"
#include "stillness.h"

static unsigned bars_missed;

/* ---- odds and ends ---- */

void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "stress: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(2);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

void sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000L };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

uint64_t random_of(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

void *shared_board(size_t size, int *ret_fd)
{
	*ret_fd = memfd_create("board", 0);
	if (*ret_fd < 0 || ftruncate(*ret_fd, (off_t)size) < 0)
		give_up("board: %s", strerror(errno));
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	if (p == MAP_FAILED)
		give_up("board: %s", strerror(errno));
	return p;
}

void *open_board(const char *fd_text, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd_text), 0);

	if (p == MAP_FAILED)
		give_up("board: %s", strerror(errno));
	return p;
}

void kill_and_wait(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static bool __attribute__((format(printf, 3, 0)))
judge(const char *name, bool is_met, const char *format, va_list args)
{
	printf("%s %s: ", is_met ? "PASS" : "FAIL", name);
	vprintf(format, args);
	printf("\n");
	fflush(stdout);
	bars_missed += !is_met;
	return is_met;
}

bool bar(const char *name, bool is_met, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	judge(name, is_met, format, args);
	va_end(args);
	return is_met;
}

bool bar_time(const char *name, uint64_t took_ns, uint64_t most_ns, const char *format, ...)
{
	uint64_t still_ns = stillness_worst_ns();
	bool is_met = took_ns < most_ns + still_ns;
	va_list args;

	if (took_ns >= most_ns)
		printf("the machine stood still for %.0f ms in its worst second\n",
		       (double)still_ns / 1e6);
	va_start(args, format);
	judge(name, is_met, format, args);
	va_end(args);
	return is_met;
}

void bar_shares(const char *name, unsigned count, const struct stage_tenant *const tenant[],
		const double promised_pct[], const double got_pct[], double still_pct)
{
	double ran = 1 - still_pct / 100;

	printf("the machine stood still for %.1f %% of that time\n", still_pct);
	for (unsigned i = 0; i < count; i++)
		bar(name,
		    got_pct[i] >= promised_pct[i] * ran * 3 / 4 &&
			    got_pct[i] <= promised_pct[i] + 1.5,
		    "%s got %.2f %% of the card, asked %.0f %%", tenant[i]->name, got_pct[i],
		    promised_pct[i]);
}

int bar_status(void)
{
	return bars_missed ? 1 : 0;
}

/* ---- servers ---- */

static void write_file(const struct stage *s, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	FILE *f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		give_up("%s: %s", path, strerror(errno));
}

/* Dies with us, so that a test that crashes leaves nothing behind. */
static pid_t start_server(const struct stage *s, char *const argv[], const char *log, int *ret_ready)
{
	int ready[2];
	char path[128];
	pid_t parent = getpid();

	snprintf(path, sizeof(path), "%s/%s", s->dir, log);
	if (pipe2(ready, O_CLOEXEC) < 0)
		give_up("pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid < 0)
		give_up("fork: %s", strerror(errno));
	if (pid == 0) {
		int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
		dup2(fd, 1);
		dup2(fd, 2);
		dup2(ready[1], 3);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		execv(argv[0], argv);
		_exit(127);
	}
	close(ready[1]);
	*ret_ready = ready[0];
	return pid;
}

static void wait_until_ready(const struct stage *s, int fd, const char *what)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	if (poll(&p, 1, 30000) != 1 || read(fd, &c, 1) != 1)
		give_up("%s did not start; see %s", what, s->dir);
	close(fd);
}

static void start_sim(struct stage *s)
{
	char spec[96];
	int ready;

	snprintf(spec, sizeof(spec), "%s/card", s->dir);
	char *const argv[] = { (char *)ALLOT_SIM,
			       (char *)"--spec",
			       spec,
			       (char *)"--socket",
			       s->sim_socket,
			       (char *)"--linger",
			       (char *)"0",
			       (char *)"--ready-fd",
			       (char *)"3",
			       NULL };
	s->sim = start_server(s, argv, "sim.log", &ready);
	wait_until_ready(s, ready, "allot-sim");
	if (link_open(&s->link, s->sim_socket, SIM_KIND_CTL) < 0)
		give_up("the simulated card does not answer");
}

static void connect_client(struct stage *s)
{
	struct error err = { 0 };

	if (client_connect(s->dir, &s->client, &err) < 0)
		give_up("the daemon does not answer: %s", err.text);
}

void stage_start_daemon(struct stage *s)
{
	char config[96], tuning[96];
	int ready;

	snprintf(config, sizeof(config), "%s/config", s->dir);
	snprintf(tuning, sizeof(tuning), "%s/tuning", s->dir);
	char *const argv[] = { (char *)ALLOTD,
			       (char *)"--private",
			       (char *)"--linger",
			       (char *)"3600",
			       (char *)"--run-dir",
			       s->dir,
			       (char *)"--ready-fd",
			       (char *)"3",
			       (char *)"--sim-socket",
			       s->sim_socket,
			       (char *)"--nvml",
			       (char *)SIM_DIR "/libnvidia-ml.so.1",
			       (char *)"--config",
			       config,
			       (char *)"--tuning",
			       tuning,
			       NULL };
	s->daemon = start_server(s, argv, "allotd.log", &ready);
	wait_until_ready(s, ready, "allotd");
	connect_client(s);
}

void stage_kill_daemon(struct stage *s)
{
	kill_and_wait(s->daemon);
	s->client = client_free(s->client);
}

void stage_start(struct stage *s, const char *card, const char *config)
{
	char text[1024];

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	stillness_watch();
	memset(s, 0, sizeof(*s));
	strcpy(s->dir, "/tmp/allot-stress-XXXXXX");
	if (!mkdtemp(s->dir))
		give_up("%s: %s", s->dir, strerror(errno));
	snprintf(s->sim_socket, sizeof(s->sim_socket), "%s/sim.sock", s->dir);
	snprintf(text, sizeof(text), "[gpu]\n%s", card);
	write_file(s, "card", text);
	write_file(s, "config", config);
	write_file(s, "tuning", "context_bytes = 64MiB\n");
	start_sim(s);
	stage_start_daemon(s);
}

void stage_stop(struct stage *s)
{
	char command[128];

	for (unsigned i = 0; i < s->tenant_count; i++)
		registration_unmap(s->tenant[i].control, s->tenant[i].report);
	stage_kill_daemon(s);
	link_close(&s->link);
	kill_and_wait(s->sim);
	snprintf(command, sizeof(command), "rm -rf '%s'", s->dir);
	if (!bar_status() && system(command) != 0)
		fprintf(stderr, "stress: %s is left\n", s->dir);
}

/* ---- tenants ---- */

static json_t *request(struct stage *s, const char *op, json_t *body)
{
	struct error err = { 0 };
	json_t *reply = NULL;

	if (client_request(s->client, op, body, &reply, &err) < 0)
		give_up("%s: %s", op, err.text);
	return reply;
}

struct stage_tenant *stage_add_tenant(struct stage *s, const char *name, uint64_t memory_bytes,
				      double cores_pct, double limit_pct)
{
	struct stage_tenant *t = &s->tenant[s->tenant_count++];
	json_t *device = json_pack("{s:i, s:I}", "index", 0, "memory_bytes",
				   (json_int_t)memory_bytes);

	if (cores_pct > 0)
		json_object_set_new(device, "cores_pct", json_real(cores_pct));
	if (limit_pct > 0)
		json_object_set_new(device, "cores_limit_pct", json_real(limit_pct));
	json_t *reply = request(s, "create",
				json_pack("{s:s, s:i, s:b, s:[o]}", "name", name, "pid",
					  (int)getpid(), "hold", 1, "devices", device));
	snprintf(t->name, sizeof(t->name), "%s", name);
	snprintf(t->id, sizeof(t->id), "%s", json_string_value(json_object_get(reply, "id")));
	snprintf(t->socket, sizeof(t->socket), "%s",
		 json_string_value(json_object_get(reply, "socket")));
	json_decref(reply);
	return t;
}

void stage_attach(struct stage *s)
{
	for (unsigned i = 0; i < s->tenant_count; i++)
		json_decref(request(s, "attach", json_pack("{s:s}", "id", s->tenant[i].id)));
}

void stage_watch(struct stage_tenant *t)
{
	struct registration r;
	int error = -ENOENT;

	for (int i = 0; i < 100 && error; i++) {
		error = registration_ask(t->socket, 0, 1000000000ULL, &r);
		if (error)
			sleep_ms(20);
	}
	if (error)
		give_up("watching tenant '%s': %s %s", t->name, strerror(-error), r.message);
	registration_unmap(t->control, t->report);
	t->control = r.control;
	t->report = r.report;
	t->own_slot = r.slot;
}

pid_t stage_spawn(const struct stage *s, const struct stage_tenant *tenant, char *const argv[])
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		give_up("fork: %s", strerror(errno));
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setenv("LD_LIBRARY_PATH", SIM_DIR, 1);
	if (tenant) {
		setenv("LD_PRELOAD", LIBALLOT, 1);
		setenv("ALLOT_SOCKET", tenant->socket, 1);
	}
	setenv("ALLOT_SIM_SOCKET", s->sim_socket, 1);
	execv("/proc/self/exe", argv);
	_exit(127);
}

json_t *stage_list(struct stage *s)
{
	return request(s, "list", json_object());
}

json_t *stage_find(json_t *list, const char *name)
{
	size_t i;
	json_t *tenant;

	json_array_foreach(json_object_get(list, "tenants"), i,
			   tenant) if (!strcmp(json_string_value(json_object_get(tenant, "name")),
					       name)) return tenant;
	return NULL;
}

json_t *stage_find_device(json_t *list, const char *name)
{
	return json_array_get(json_object_get(stage_find(list, name), "devices"), 0);
}

/* ---- eyes ---- */

uint64_t stage_card_used(struct stage *s, pid_t pid)
{
	struct sim_card_state *state = NULL;
	void *payload = NULL;
	size_t size = 0;
	uint64_t used = 0;

	if (link_call(&s->link, (struct sim_request_msg){ .type = SIM_CARD_STATE }, NULL, &payload,
		      &size) != 0 ||
	    !payload)
		give_up("the simulated card does not answer");
	state = payload;
	struct sim_process_state *p = (struct sim_process_state *)(state + 1);
	for (uint32_t i = 0; i < state->processes; i++)
		if ((pid_t)p[i].pid == pid)
			used += p[i].used_bytes;
	if (!pid)
		used = state->used_bytes;
	free(payload);
	return used;
}

uint64_t stage_card_busy_ns(struct stage *s, pid_t pid)
{
	void *payload = NULL;
	size_t size = 0, i;
	uint64_t busy_ns = 0;
	json_t *client;

	if (link_call(&s->link, (struct sim_request_msg){ .type = SIM_CTL_STATS }, NULL, &payload,
		      &size) != 0 ||
	    !payload)
		give_up("the simulated card does not answer");
	json_t *stats = json_loadb(payload, size, 0, NULL);
	json_array_foreach(json_object_get(stats, "clients"), i, client)
	{
		json_t *card = json_array_get(json_object_get(client, "cards"), 0);
		if (json_integer_value(json_object_get(client, "pid")) == pid)
			busy_ns += (uint64_t)json_integer_value(json_object_get(card, "busy_us")) *
				   1000;
	}
	json_decref(stats);
	free(payload);
	return busy_ns;
}

static uint32_t slot_count(const struct stage_tenant *t)
{
	uint32_t n = atomic_load(&t->control->slot_limit);

	return n < REGION_MAX_SLOTS ? n : REGION_MAX_SLOTS;
}

uint64_t stage_slots_used(const struct stage_tenant *t)
{
	uint64_t seen[2][REGION_MAX_SLOTS];
	uint32_t count = slot_count(t);

	for (int try = 0; try < 1000; try++) {
		uint64_t *now = seen[try % 2], sum = 0;
		for (uint32_t i = 0; i < count; i++) {
			now[i] = atomic_load(&t->report->slot[i].device[0].used_bytes);
			sum += now[i];
		}
		if (try && !memcmp(seen[0], seen[1], count * sizeof(now[0])))
			return sum;
	}
	return UINT64_MAX;
}

int stage_slot_of(const struct stage_tenant *t, pid_t pid)
{
	uint32_t count = slot_count(t);

	for (uint32_t i = 0; i < count; i++)
		if (atomic_load(&t->report->slot[i].state) == SLOT_LIVE &&
		    atomic_load(&t->report->slot[i].pid) == pid)
			return (int)i;
	return -1;
}
