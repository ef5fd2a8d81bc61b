/*
 * differential-calls
 *
 * Reads lines "KIND NUMBER MODE START LENGTH TIMEOUT_S" and executes each in a process of its own, which
 * is forked from this one as it was at the start: both libraries loaded and nothing called. Writes the
 * transcript, one line a call, and a last line of a dot and how the process ended.
 *
 *     random SEED    LENGTH functions at random with arguments at random, of which most are good
 *     calm SEED      the same without handles and addresses that a driver may crash on
 *     sweep GROUP    each of the group's functions with each argument of each class, the others good;
 *                    calls before START are left out in both, as one of them ended the process
 *     function N     one function swept
 *     functions, groups   tells their names, or how many groups there are; these take no numbers
 *     careful NAME   calm sequences call this one with good arguments alone from now on; told twice, not at all
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

#define TRANSCRIPT_BYTES (16u << 20)
#define LINE_MAX 8192
#define GROUP 4 /* functions of a sweep in one process */
#define WORDS_SHOWN 12
#define BAD_PCT 25

/* What a process has done before its sequence begins. */
enum mode {
	NOTHING,    /* not even cuInit */
	NO_CONTEXT, /* initialized */
	PRIMARY,    /* the primary context is current, and there is one of each object */
	OWN,        /* a context of its own is */
	ENDED,      /* that context has been destroyed, and NVML been shut down */
	FORKED,     /* all this was in the parent */
	MODES
};

static struct {
	size_t used;
	char text[TRANSCRIPT_BYTES];
} * transcript;

/* A handle's value is never given out twice, so that what ended stays recognizable. */
__attribute__((visibility("default"))) void free(void *ptr)
{
}

static void say(const char *text)
{
	size_t n = strlen(text);

	if (transcript->used + n < TRANSCRIPT_BYTES) {
		memcpy(transcript->text + transcript->used, text, n);
		transcript->used += n;
	}
}

/* ---- one call ---- */

static const char *const ending_words[] = { "Destroy", "Free", "Release", "Unload", "Close", "Unmap" };

static void note_end(const struct function *f, const struct argument *args)
{
	bool ends = false;

	/* What NVML 580 says of a device from before depends on what was asked of it before, and then of all devices too. */
	if (!strcmp(f->name, "nvmlShutdown"))
		objects_forget("nvmlDevice_t");
	for (size_t i = 0; i < sizeof(ending_words) / sizeof(*ending_words); i++)
		ends |= strstr(f->name, ending_words[i]) != NULL;
	for (unsigned int i = 0; ends && i < f->params_n; i++)
		if (f->params[i].kind == HANDLE) {
			objects_end(f->params[i].type, args[i].word);
			return;
		} else if (strstr(f->name, "Host")) {
			objects_end("host", args[i].word);
			objects_end("CUdeviceptr", args[i].word); /* by which the device had it */
			return;
		}
}

static void note_object(const struct function *f, const struct param *p, const void *window)
{
	uint64_t word;
	char text[WINDOW_BYTES + 1];

	memcpy(&word, window, sizeof(word));
	if (p->is_const)
		return;
	if (p->stars == 2 && !strcmp(p->type, "void") && strstr(f->name, "Host")) {
		objects_add("host", word);
	} else if (p->stars == 1 && !strcmp(p->type, "char")) {
		snprintf(text, sizeof(text), "%.90s", (const char *)window);
		objects_add_text(text);
	} else if (p->stars == 1) {
		struct param by_value;

		/* Is it a handle that is pointed to? */
		char as_text[2 * NAME_SIZE];
		snprintf(as_text, sizeof(as_text), "%s x", p->type);
		if (parse_params(as_text, &by_value, 1) == 1 && by_value.kind == HANDLE)
			objects_add(p->type, word);
	}
}

/* Words as the call saw them: of a pointer that was not aligned, from there on. */
static size_t note_window(unsigned int number, const unsigned char *before,
			  const unsigned char *after, size_t bytes, char *line, size_t size)
{
	uint64_t hash = 14695981039346656037ull;
	unsigned int changed = 0;
	size_t used = 0;
	char text[128];

	for (unsigned int i = 0; i < bytes / 8; i++) {
		uint64_t word;

		memcpy(&word, after + 8 * i, 8);
		if (!memcmp(before + 8 * i, &word, 8))
			continue;
		describe_word(word, text, sizeof(text));
		if (changed++ < WORDS_SHOWN && used < size)
			used += (size_t)snprintf(line + used, size - used, " %u[%u]=%s", number, i,
						 text);
		for (char *c = text; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
	}
	if (changed > WORDS_SHOWN && used < size)
		used += (size_t)snprintf(line + used, size - used, " %u: %u words, %llx", number,
					 changed, (unsigned long long)hash);
	return used;
}

/* What lies behind the end of a text, in the buffer that it was written to, is nobody's. */
static void ignore_rest_of_text(const struct function *f, unsigned int i,
				const struct argument *args, const unsigned char *before)
{
	const struct param *p = &f->params[i];
	uint64_t length = i + 1 < f->params_n && f->params[i + 1].kind == SCALAR ? args[i + 1].word
										 : 0;
	char *window = args[i].window, *end = window + WINDOW_BYTES;
	char *text = (char *)(uintptr_t)args[i].word, *nul;

	if (p->is_const || p->stars != 1 || strcmp(p->type, "char") || text < window || text >= end)
		return;
	if (length > (uint64_t)(end - text))
		length = (uint64_t)(end - text);
	nul = memchr(text, 0, length);
	if (nul)
		memcpy(nul, before + (nul - window), length - (size_t)(nul - text));
	if (nul)
		*nul = '\0';
}

typedef int generic(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
		    uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
		    uint64_t, uint64_t, uint64_t, uint64_t);

/* As the x86-64 ABI passes integers and pointers: six in registers, others and structures on the stack. */
static int invoke(const struct function *f, const struct argument *args)
{
	uint64_t registers[6] = { 0 }, stack[14] = { 0 };
	unsigned int r = 0, s = 0;

	for (unsigned int i = 0; i < f->params_n; i++) {
		if (f->params[i].kind == BLOB) {
			memcpy(&stack[s], args[i].blob, sizeof(args[i].blob));
			s += sizeof(args[i].blob) / 8;
		} else if (r < 6) {
			registers[r++] = args[i].word;
		} else {
			stack[s++] = args[i].word;
		}
	}
	return ((generic *)f->address)(registers[0], registers[1], registers[2], registers[3],
				       registers[4], registers[5], stack[0], stack[1], stack[2],
				       stack[3], stack[4], stack[5], stack[6], stack[7], stack[8],
				       stack[9], stack[10], stack[11], stack[12], stack[13]);
}

static void perform(long number, const struct function *f, struct argument *args)
{
	static unsigned char before[PARAMS_MAX][WINDOW_BYTES];
	char line[LINE_MAX];
	size_t used;
	int result;

	used = (size_t)snprintf(line, sizeof(line), "%ld %s(", number, f->name);
	for (unsigned int i = 0; i < f->params_n && used < sizeof(line); i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s", i ? ", " : "",
					 args[i].text);
	say(line);
	if (!f->address) {
		say(") absent\n");
		return;
	}
	for (unsigned int i = 0; i < f->params_n; i++)
		if (args[i].window)
			memcpy(before[i], args[i].window, WINDOW_BYTES);
	result = invoke(f, args);
	used = (size_t)snprintf(line, sizeof(line), ") = %d;", result);
	for (unsigned int i = 0; i < f->params_n; i++) {
		size_t shift = args[i].word - (uintptr_t)args[i].window;
		const unsigned char *window = args[i].window;

		if (!window)
			continue;
		ignore_rest_of_text(f, i, args, before[i]);
		shift = shift < 8 ? shift : 0;
		/* First, so that what was made now is called by its name. */
		if (!result && memcmp(before[i] + shift, window + shift, 8))
			note_object(f, &f->params[i], window + shift);
		used += note_window(i, before[i] + shift, window + shift, WINDOW_BYTES - shift,
				    line + used, sizeof(line) - used);
		used = used < sizeof(line) ? used : sizeof(line) - 1;
	}
	if (!result)
		note_end(f, args);
	say(line);
	say("\n");
}

/* ---- sequences ---- */

static const char *const objects_made[] = {
	"nvmlDeviceGetHandleByIndex_v2",
	"nvmlDeviceGetUUID",
	"nvmlEventSetCreate",
	"cuDeviceGetPCIBusId",
	"cuStreamCreate",
	"cuStreamCreateWithPriority",
	"cuEventCreate",
	"cuEventCreate",
	"cuMemAlloc_v2",
	"cuMemAlloc_v2",
	"cuMemAllocManaged",
	"cuModuleLoadData",
	"cuModuleGetFunction",
	"cuLibraryLoadData",
	"cuLibraryGetKernel",
	"cuGraphCreate",
	"cuGraphAddEmptyNode",
	"cuGraphInstantiateWithFlags",
	"cuArrayCreate_v2",
	"cuMemHostAlloc",
	"cuMemPoolCreate",
	"cuMemAllocAsync",
	"cuMemAddressReserve",
	"cuMemCreate",
};
/* One of each kind is stale from the start. */
static const char *const objects_ended[] = { "cuStreamDestroy_v2", "cuEventDestroy_v2",
					     "cuMemFree_v2" };

static void perform_good(const char *name)
{
	struct function *f = function_find(name);
	struct argument args[PARAMS_MAX];

	for (unsigned int i = 0; i < f->params_n; i++)
		argument_make(f, i, GOOD, &args[i]);
	perform(-1, f, args);
}

static void perform_all(const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		perform_good(names[i]);
}

/* However the parent ends. Its process group is another one, and a call may wait for ever. */
static void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(97); /* it has ended already */
}

/* The parent's end is the child's: a signal too. */
static void go_on_in_child(void)
{
	int status;
	pid_t parent = getpid(), pid = fork();

	if (!pid) {
		end_with(parent);
		return;
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		_exit(99);
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		kill(getpid(), WTERMSIG(status));
	}
	_exit(WEXITSTATUS(status));
}

static void prepare(enum mode mode)
{
	random_seed(mode);
	if (mode == NOTHING)
		return;
	perform_good("cuInit");
	perform_good("nvmlInit_v2");
	if (mode == NO_CONTEXT)
		return;
	if (mode == PRIMARY) {
		perform_good("cuDevicePrimaryCtxRetain");
		perform_good("cuCtxSetCurrent");
	} else {
		perform_good("cuCtxCreate_v2");
	}
	perform_all(objects_made, sizeof(objects_made) / sizeof(*objects_made));
	perform_all(objects_ended, sizeof(objects_ended) / sizeof(*objects_ended));
	if (mode == ENDED) {
		perform_good("cuCtxDestroy_v2");
		perform_good("nvmlShutdown");
	}
	if (mode == FORKED)
		go_on_in_child();
}

/* An address in no page mostly ends the process: now and then is enough. */
static enum class pick_class(const struct param *p, bool is_calm) {
	enum class class = (enum class)random_below(CLASSES);

	if (is_calm && (p->kind == POINTER || p->kind == HANDLE)) return ZERO;
	if ((class == ONE || class == ALL_ONES) && (p->kind == POINTER || p->kind == HANDLE) &&
	    random_below(8)) return ZERO;
	return class;
}

static enum class class_for(const struct function *f, unsigned int i, bool is_calm) {
	const struct param *p = &f->params[i];

	/* The simulated GPU copies at once and does these in the stream's order: what is read back depends on the moment. */
	if (strstr(f->name, "cuStreamWriteValue") && !strcmp(p->type, "CUdeviceptr")) return ZERO;
	if (is_calm && f->calm_use == GOOD_ARGUMENTS) return GOOD;
	return random_below(100) < BAD_PCT ? pick_class(p, is_calm) : GOOD;
}

static void run_random(uint64_t seed, bool is_calm, long start, long length)
{
	for (long k = start; k < length; k++) {
		struct argument args[PARAMS_MAX];
		struct function *f;

		random_seed(seed * 1000003 + (uint64_t)k * 7919 + 1);
		do
			f = &functions[random_below(functions_n)];
		while (is_calm && f->calm_use == LEFT_OUT);
		for (unsigned int i = 0; i < f->params_n; i++)
			argument_make(f, i, class_for(f, i, is_calm), &args[i]);
		perform(k, f, args);
	}
}

/* Argument `odd` is of the class, the others good; odd == params_n: all are of the class. */
static void run_swept(long k, const struct function *f, unsigned int odd, enum class class)
{
	struct argument args[PARAMS_MAX];

	random_seed((uint64_t)k * 104729 + 7);
	for (unsigned int i = 0; i < f->params_n; i++)
		argument_make(f, i, i == odd || odd == f->params_n ? class : GOOD, &args[i]);
	perform(k, f, args);
}

static long sweep(const struct function *f, long k, long start)
{
	for (unsigned int odd = 0; odd <= f->params_n; odd++)
		for (int class = 0; class < CLASSES; class ++, k++)
			if (k >= start && (f->params_n || class == GOOD) &&
			    (class != ALL_ONES || odd == f->params_n ||
			     f->params[odd].kind == SCALAR))
				run_swept(k, f, odd, (enum class) class);
	return k;
}

static void run_sweep(uint64_t group, long start)
{
	long k = 0;

	for (unsigned int n = 0; n < GROUP; n++) {
		/* The functions of a group are of different families: one that ends things harms few. */
		unsigned int groups = (functions_n + GROUP - 1) / GROUP;
		uint64_t at = group + (uint64_t)n * groups;

		if (at < functions_n)
			k = sweep(&functions[at], k, start);
	}
}

/* ---- processes ---- */

static void silence(void)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
}

static void run_child(pid_t parent, const char *kind, uint64_t number, enum mode mode, long start,
		      long length)
{
	end_with(parent);
	setpgid(0, 0);
	silence();
	/* Whatever name a file is given, none can be made there. */
	if (chdir("/proc"))
		_exit(98);
	prepare(mode);
	if (!strcmp(kind, "random") || !strcmp(kind, "calm"))
		run_random(number, !strcmp(kind, "calm"), start, length);
	else if (!strcmp(kind, "function") && number < functions_n)
		sweep(&functions[number], 0, start);
	else
		run_sweep(number, start);
	say("at the end ");
	exit(0);
}

static int wait_for(pid_t pid, int timeout_s, bool *ret_hung)
{
	sigset_t ended;
	struct timespec left = { .tv_sec = timeout_s };
	int status;

	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	*ret_hung = false;
	while (waitpid(pid, &status, WNOHANG) != pid)
		if (!*ret_hung && sigtimedwait(&ended, NULL, &left) < 0) {
			*ret_hung = true;
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			break;
		}
	return status;
}

static void run(const char *kind, uint64_t number, enum mode mode, long start, long length,
		int timeout_s)
{
	bool hung;
	int status;
	pid_t parent = getpid(), pid;

	transcript->used = 0;
	fflush(NULL);
	pid = fork();
	if (!pid)
		run_child(parent, kind, number, mode, start, length);
	if (pid < 0) {
		printf(". fork failed\n");
		return;
	}
	status = wait_for(pid, timeout_s, &hung);
	fwrite(transcript->text, 1, transcript->used, stdout);
	if (hung)
		printf("\n. hung\n");
	else if (WIFSIGNALED(status))
		printf("\n. signal %d\n", WTERMSIG(status));
	else
		printf("\n. exit %d\n", WEXITSTATUS(status));
}

static void be_careful(const char *name)
{
	struct function *f = function_find(name);

	f->calm_use = f->calm_use == ALL_ARGUMENTS ? GOOD_ARGUMENTS : LEFT_OUT;
	printf("%s\n", name);
}

int main(void)
{
	char line[256], kind[16], name[128];
	unsigned long long number;
	int mode, timeout_s;
	long start, length;
	sigset_t ended;

	transcript = mmap(NULL, sizeof(*transcript), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (transcript == MAP_FAILED)
		return 2;
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	arguments_open();
	functions_load();
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "functions\n"))
			for (unsigned int i = 0; i < functions_n; i++)
				printf("%s%c", functions[i].name, i + 1 < functions_n ? ' ' : '\n');
		else if (!strcmp(line, "groups\n"))
			printf("%u\n", (functions_n + GROUP - 1) / GROUP);
		else if (sscanf(line, "careful %127s", name) == 1 && function_find(name))
			be_careful(name);
		else if (sscanf(line, "%15s %llu %d %ld %ld %d", kind, &number, &mode, &start,
				&length, &timeout_s) == 6)
			run(kind, number, (enum mode)mode, start, length, timeout_s);
		else
			return 2;
		fflush(stdout);
	}
	return 0;
}
