#include "node/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"

#define CONFIG_FILE_MAX 65536
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum kind {
	KIND_DURATION,
	KIND_SIZE,
	KIND_PERCENT,
	KIND_SWITCH,
	KIND_LEVEL,
	KIND_TEXT,
	KIND_GAIN,
	KIND_OVERCOMMIT,
	/* One of some names, whose place is the value: see choices. */
	KIND_POLICY,
	KIND_CONTROL,
	KIND_SENSOR,
};

/* `default_text` is NULL where the arbiter or its elastic policy has the default. */
struct setting {
	const char *name;
	enum kind kind;
	size_t offset;
	const char *default_text;
	uint64_t min, max; /* nanoseconds, bytes, hundredths of a percent, or whole numbers */
	const char *help;
};

#define AT(field) offsetof(struct config, field)
_Static_assert(sizeof(enum arbiter_policy) == sizeof(unsigned) &&
		       sizeof(enum feedback_control) == sizeof(unsigned) &&
		       sizeof(enum arbiter_sensor) == sizeof(unsigned),
	       "a choice is written as an unsigned");
#define US(n) ((n)*NSEC_PER_USEC)
#define MS(n) ((n)*NSEC_PER_MSEC)
#define S(n) ((n)*NSEC_PER_SEC)
#define PCT(n) ((n)*100)

static const struct setting settings[] = {
	{ "log_level", KIND_LEVEL, AT(log_level), "info", 0, 0, "error, warning, info or debug" },
	{ "nvml", KIND_TEXT, AT(nvml), "libnvidia-ml.so.1", 0, 0, "NVML's library, by name or path" },
	{ "linger", KIND_DURATION, AT(linger_ns), "1s", MS(1), S(86400),
	  "a private daemon without tenants exits after this long" },
	{ "census_interval", KIND_DURATION, AT(census_ns), "1s", MS(50), S(3600),
	  "how often each ledger is compared with what NVML says" },
	{ "adopt_wait", KIND_DURATION, AT(adopt_wait_ns), "1s", MS(1), S(60),
	  "after a restart, how long reservations wait for processes to move over" },
	{ "adopt_grace", KIND_DURATION, AT(adopt_grace_ns), "5s", MS(1), S(3600),
	  "after a restart, how long a held tenant may have neither holder nor process" },
	{ "context_bytes", KIND_SIZE, AT(context_bytes), "518MiB", 16 * MIB, 4 * GIB,
	  "memory charged for a CUDA context, until it has been measured" },
	{ "swap_arena", KIND_SIZE, AT(swap_arena_bytes), "auto", 2 * MIB, 1024 * GIB,
	  "host memory for what is taken off the cards; auto: half of the machine's" },
	{ "overcommit_cores", KIND_OVERCOMMIT, AT(refuse_overcommit), "warn", 0, 0,
	  "guarantees over 100 % in sum: warn (and scale them), or refuse" },
	{ "urgent_window", KIND_DURATION, AT(arbiter.urgent_window_ns), NULL, MS(1), S(60),
	  "over which a budget for priority may be saved up" },
	{ "urgent_slice", KIND_DURATION, AT(arbiter.urgent_slice_ns), NULL, US(100), S(1),
	  "what a budget for priority may be overdrawn by" },
	{ "depth", KIND_DURATION, AT(arbiter.depth_ns), NULL, US(10), S(1),
	  "work that a lease holder may have in flight" },
	{ "free_depth", KIND_DURATION, AT(free_depth_ns), "10ms", US(10), S(10),
	  "work that a tenant which runs alone may have in flight" },
	{ "policy", KIND_POLICY, AT(arbiter.policy), "lease", 0, 0,
	  "how GPU time is handed out: lease, feedback or token" },
	{ "quantum", KIND_DURATION, AT(arbiter.quantum_ns), NULL, US(100), S(1),
	  "length of a lease while several tenants compute, at most" },
	{ "quantum_min", KIND_DURATION, AT(arbiter.quantum_min_ns), NULL, US(100), S(1),
	  "length of such a lease at least, where caps leave time for more hand-overs" },
	{ "long_work", KIND_DURATION, AT(arbiter.long_work_ns), NULL, US(100), S(60),
	  "a lease holder begins nothing behind a piece of work that lasts this long" },
	{ "switch_cost", KIND_DURATION, AT(arbiter.switch_ns), NULL, 0, S(1),
	  "what the GPU needs to change tenants: charged to nobody" },
	{ "min_lease", KIND_DURATION, AT(arbiter.min_lease_ns), NULL, US(10), S(1),
	  "a lease is not cut short for a returning tenant before this" },
	{ "cap_slice", KIND_DURATION, AT(arbiter.cap_slice_ns), NULL, US(10), S(1),
	  "GPU time that a capped tenant, alone, gathers before it runs again" },
	{ "cap_window", KIND_DURATION, AT(arbiter.window_ns), NULL, MS(1), S(60),
	  "over which a cap may be filled up" },
	{ "cap_idle_window", KIND_DURATION, AT(arbiter.idle_window_ns), NULL, 0, S(60),
	  "over which a cap may be filled up by a tenant that rests" },
	{ "idle", KIND_DURATION, AT(arbiter.idle_ns), NULL, US(10), S(1),
	  "a lease holder this long idle gives way at the latest, if it often comes back soon" },
	{ "idle_min", KIND_DURATION, AT(arbiter.idle_min_ns), NULL, US(10), S(1),
	  "a lease holder this long idle gives way at the earliest" },
	{ "free_after", KIND_DURATION, AT(arbiter.free_after_ns), NULL, MS(1), S(60),
	  "others this long idle before the one active tenant runs free" },
	{ "start_grace", KIND_DURATION, AT(arbiter.start_grace_ns), NULL, 0, S(1),
	  "from getting a lease to the first work: not charged, at most" },
	{ "drain_min", KIND_DURATION, AT(arbiter.drain_min_ns), NULL, US(100), S(10),
	  "a drain may take this long at least" },
	{ "drain_max", KIND_DURATION, AT(arbiter.drain_max_ns), NULL, US(100), S(60),
	  "a drain may take this long at most" },
	{ "poll_drain", KIND_DURATION, AT(arbiter.poll_drain_ns), NULL, US(10), S(1),
	  "how often the arbiter looks while a lease is being drained" },
	{ "poll_lease", KIND_DURATION, AT(arbiter.poll_lease_ns), NULL, US(10), S(1),
	  "how often the arbiter looks under leases" },
	{ "poll_free", KIND_DURATION, AT(arbiter.poll_free_ns), NULL, US(10), S(1),
	  "how often the arbiter looks while one tenant runs free" },
	{ "poll_idle", KIND_DURATION, AT(arbiter.poll_idle_ns), NULL, US(10), S(1),
	  "how often the arbiter looks while no tenant computes" },
	{ "poll_rung", KIND_DURATION, AT(arbiter.poll_rung_ns), NULL, US(10), S(1),
	  "how often the arbiter looks at tenants that tell it when there is something to see" },
	{ "elastic", KIND_SWITCH, AT(is_elastic), "off", 0, 0,
	  "on or off: a tenant held at --cores may use what others leave unused" },
	{ "elastic_limit", KIND_PERCENT, AT(elastic.most_pct), NULL, PCT(1), PCT(100),
	  "the most that such a tenant may reach" },
	{ "elastic_period", KIND_DURATION, AT(elastic.period_ns), NULL, MS(100), S(1),
	  "how often it is decided what is lent" },
	{ "elastic_fade", KIND_DURATION, AT(elastic.fade_ns), NULL, MS(100), S(60),
	  "how fast it is forgotten what an owner has used" },
	{ "elastic_step", KIND_PERCENT, AT(elastic.step_pct), NULL, PCT(1), PCT(100),
	  "points by which a limit moves at most in a period" },
	{ "elastic_reserve", KIND_PERCENT, AT(elastic.reserve_pct), NULL, 0, PCT(100),
	  "part of what an owner leaves unused that is not lent" },
	{ "gang", KIND_SWITCH, AT(is_gang), "on", 0, 0,
	  "on or off: who works on several GPUs has its turns on them at the same time" },
	{ "token_quota", KIND_DURATION, AT(arbiter.token_quota_ns), NULL, MS(1), S(10),
	  "policy token: how long one tenant has the token" },
	{ "token_window", KIND_DURATION, AT(arbiter.token_window_ns), NULL, MS(10), S(3600),
	  "policy token: over which use is counted" },
	{ "feedback_control", KIND_CONTROL, AT(arbiter.feedback.control), "pi", 0, 0,
	  "policy feedback: the control law, p, pi or pid" },
	{ "feedback_sensor", KIND_SENSOR, AT(arbiter.feedback_sensor), "busy", 0, 0,
	  "policy feedback: what it measures, busy (time) or nvml" },
	{ "feedback_p", KIND_GAIN, AT(arbiter.feedback.gains.p), "auto", 0, 100,
	  "policy feedback: gain of the error; auto: by feedback_control" },
	{ "feedback_i", KIND_GAIN, AT(arbiter.feedback.gains.i_per_s), "auto", 0, 1000,
	  "policy feedback: gain of its sum over time, a second; or auto" },
	{ "feedback_d", KIND_GAIN, AT(arbiter.feedback.gains.d_s), "auto", 0, 10,
	  "policy feedback: gain of the share's slope, in seconds; or auto" },
	{ "feedback_smooth", KIND_DURATION, AT(arbiter.feedback.smooth_ns), NULL, MS(1), S(10),
	  "policy feedback: time constant of the measured share" },
	{ "feedback_period_min", KIND_DURATION, AT(arbiter.feedback.period_min_ns), NULL, MS(1),
	  S(10), "policy feedback: shortest time between two measurements" },
	{ "feedback_period_max", KIND_DURATION, AT(arbiter.feedback.period_max_ns), NULL, MS(1),
	  S(10), "policy feedback: longest time between two measurements" },
};
#define SETTING_COUNT (sizeof(settings) / sizeof(settings[0]))

static const struct {
	const char *name;
	enum log_level level;
} levels[] = { { "error", LOG_LEVEL_ERROR },
	       { "warning", LOG_LEVEL_WARNING },
	       { "info", LOG_LEVEL_INFO },
	       { "debug", LOG_LEVEL_DEBUG } };

static int set_level(enum log_level *level, const char *value, struct error *err)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (!strcmp(levels[i].name, value)) {
			*level = levels[i].level;
			return 0;
		}
	return error_set(err, EINVAL, "'%s': must be error, warning, info or debug", value);
}

#define CHOICES_MAX 4
static const char *const choices[][CHOICES_MAX] = {
	[KIND_POLICY] = { [ARBITER_POLICY_LEASE] = "lease",
			  [ARBITER_POLICY_FEEDBACK] = "feedback",
			  [ARBITER_POLICY_TOKEN] = "token" },
	[KIND_CONTROL] = { [FEEDBACK_P] = "p", [FEEDBACK_PI] = "pi", [FEEDBACK_PID] = "pid" },
	[KIND_SENSOR] = { [ARBITER_SENSOR_BUSY] = "busy", [ARBITER_SENSOR_NVML] = "nvml" },
};

const char *config_policy_name(enum arbiter_policy policy)
{
	return choices[KIND_POLICY][policy];
}

static int set_choice(enum kind kind, unsigned *field, const char *value, struct error *err)
{
	char names[64] = "";
	for (unsigned i = 0; i < CHOICES_MAX && choices[kind][i]; i++) {
		if (!strcmp(choices[kind][i], value)) {
			*field = i;
			return 0;
		}
		bool is_last = i + 1 == CHOICES_MAX || !choices[kind][i + 1];
		size_t n = strlen(names);
		snprintf(names + n, sizeof(names) - n, "%s%s",
			 !i        ? ""
			 : is_last ? " or "
				   : ", ",
			 choices[kind][i]);
	}
	return error_set(err, EINVAL, "'%.40s': must be %s", value, names);
}

static void format_number(const struct setting *s, uint64_t value, char *text, size_t size)
{
	if (s->kind == KIND_SIZE)
		snprintf(text, size, "%" PRIu64 "MiB", value / MIB);
	else if (s->kind == KIND_PERCENT)
		snprintf(text, size, "%g", (double)value / PCT(1));
	else if (value % NSEC_PER_SEC == 0)
		snprintf(text, size, "%" PRIu64 "s", value / NSEC_PER_SEC);
	else if (value % NSEC_PER_MSEC == 0)
		snprintf(text, size, "%" PRIu64 "ms", value / NSEC_PER_MSEC);
	else
		snprintf(text, size, "%" PRIu64 "us", value / NSEC_PER_USEC);
}

static int set_number(const struct setting *s, uint64_t *field, const char *value, struct error *err)
{
	char low[32], high[32];
	uint64_t number;
	if (s->kind == KIND_SIZE && !strcmp(value, "auto") && !strcmp(s->default_text, "auto")) {
		*field = 0;
		return 0;
	}
	int r = s->kind == KIND_SIZE ? parse_size(value, &number, err)
				     : parse_duration(value, &number, err);
	if (r < 0)
		return r;
	if (number < s->min || number > s->max) {
		format_number(s, s->min, low, sizeof(low));
		format_number(s, s->max, high, sizeof(high));
		return error_set(err, ERANGE, "'%s': must be from %s to %s", value, low, high);
	}
	*field = number;
	return 0;
}

static int set_percent(const struct setting *s, double *field, const char *value, struct error *err)
{
	double pct = 0;
	/* Nothing at all is a share of no tenant's, but may be a setting. */
	int r = s->min == 0 && !strcmp(value, "0") ? 0 : parse_percent(value, &pct, err);
	if (r < 0)
		return r;
	if (pct * PCT(1) < (double)s->min || pct * PCT(1) > (double)s->max)
		return error_set(err, ERANGE, "'%s': must be from %g to %g", value,
				 (double)s->min / PCT(1), (double)s->max / PCT(1));
	*field = pct;
	return 0;
}

static int set_gain(const struct setting *s, double *field, const char *value, struct error *err)
{
	if (strcmp(value, "auto") != 0)
		return parse_number(value, (double)s->min, (double)s->max, field, err);
	*field = FEEDBACK_OWN_GAIN;
	return 0;
}

static int set_switch(bool *field, const char *value, struct error *err)
{
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return error_set(err, EINVAL, "'%.40s': must be on or off", value);
	*field = !strcmp(value, "on");
	return 0;
}

static int set_value(struct config *config, const struct setting *s, const char *value,
		     struct error *err)
{
	char *field = (char *)config + s->offset;
	switch (s->kind) {
	case KIND_OVERCOMMIT:
		if (strcmp(value, "warn") && strcmp(value, "refuse"))
			return error_set(err, EINVAL, "'%.40s': must be warn or refuse", value);
		*(bool *)(void *)field = !strcmp(value, "refuse");
		return 0;
	case KIND_LEVEL: return set_level((enum log_level *)(void *)field, value, err);
	case KIND_POLICY:
	case KIND_CONTROL:
	case KIND_SENSOR: return set_choice(s->kind, (unsigned *)(void *)field, value, err);
	case KIND_DURATION:
	case KIND_SIZE: return set_number(s, (uint64_t *)(void *)field, value, err);
	case KIND_PERCENT: return set_percent(s, (double *)(void *)field, value, err);
	case KIND_GAIN: return set_gain(s, (double *)(void *)field, value, err);
	case KIND_SWITCH: return set_switch((bool *)(void *)field, value, err);
	case KIND_TEXT:
		if (!*value || strlen(value) >= CONFIG_PATH_MAX)
			return error_set(err, EINVAL, "'%.40s': must be 1 to %d bytes", value,
					 CONFIG_PATH_MAX - 1);
		strcpy(field, value);
		return 0;
	}
	return error_set(err, EINVAL, "setting of unknown kind");
}

static const struct setting *find_setting(const char *key)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!strcmp(settings[i].name, key))
			return &settings[i];
	return NULL;
}

int config_set(struct config *config, const char *key, const char *value, struct error *err)
{
	const struct setting *s = find_setting(key);
	if (!s)
		return error_set(err, EINVAL, "%.60s: no such setting (allotd --help lists them)",
				 key);
	int r = set_value(config, s, value, err);
	return r < 0 ? error_add(err, r, "%s", key) : 0;
}

void config_default(struct config *config)
{
	*config = (struct config){ .arbiter = arbiter_default_config(),
				   .elastic = elastic_default_config() };
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings[i].default_text)
			set_value(config, &settings[i], settings[i].default_text, NULL);
}

/* Cuts white space off both ends, in place. */
static char *trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	size_t n = strlen(text);
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		text[--n] = '\0';
	return text;
}

/* Settings of which the first may not be above the second. */
static const char *const ordered[][2] = {
	{ "drain_min", "drain_max" },
	{ "feedback_period_min", "feedback_period_max" },
};

/* What no line by itself shows. Returns how many pairs are the wrong way round. */
static unsigned check_order(const struct config *config, const char *file, config_complain complain,
			    void *data)
{
	unsigned bad = 0;
	for (size_t i = 0; i < sizeof(ordered) / sizeof(ordered[0]); i++) {
		const struct setting *less = find_setting(ordered[i][0]);
		const struct setting *more = find_setting(ordered[i][1]);
		const void *low = (const char *)config + less->offset;
		const void *high = (const char *)config + more->offset;
		char low_text[32], high_text[32];
		struct error err = { 0 };
		if (*(const uint64_t *)low <= *(const uint64_t *)high)
			continue;
		format_number(less, *(const uint64_t *)low, low_text, sizeof(low_text));
		format_number(more, *(const uint64_t *)high, high_text, sizeof(high_text));
		error_set(&err, EINVAL, "%s: %s: '%s' is above %s, '%s'", file, less->name,
			  low_text, more->name, high_text);
		complain(data, err.text);
		bad++;
	}
	return bad;
}

static int parse_line(struct config *config, char *line, struct error *err)
{
	char *comment = strchr(line, '#');
	if (comment)
		*comment = '\0';
	line = trim(line);
	if (!*line)
		return 0;
	char *equals = strchr(line, '=');
	if (!equals)
		return error_set(err, EINVAL, "%.60s: must be 'key = value'", line);
	*equals = '\0';
	return config_set(config, trim(line), trim(equals + 1), err);
}

unsigned config_parse(struct config *config, const char *file, const char *text,
		      config_complain complain, void *data)
{
	unsigned bad = 0, number = 0;
	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[1024];
		struct error err = { 0 };
		int r;
		number++;
		if (length >= sizeof(line)) {
			r = error_set(&err, EINVAL, "line longer than %zu bytes", sizeof(line) - 1);
		} else {
			memcpy(line, text, length);
			line[length] = '\0';
			r = parse_line(config, line, &err);
		}
		if (r < 0) {
			bad++;
			error_add(&err, r, "%s:%u", file, number);
			complain(data, err.text);
		}
		text += length + (text[length] == '\n');
	}
	return bad + check_order(config, file, complain, data);
}

int config_load(struct config *config, const char *file, config_complain complain, void *data,
		struct error *err)
{
	cleanup_file FILE *f = fopen(file, "re");
	if (!f)
		return error_set_errno(err, errno, "%s", file);
	cleanup_free char *text = malloc(CONFIG_FILE_MAX + 1);
	if (!text)
		return error_set_errno(err, ENOMEM, "%s", file);
	size_t n = fread(text, 1, CONFIG_FILE_MAX + 1, f);
	if (ferror(f))
		return error_set_errno(err, errno ? errno : EIO, "%s", file);
	if (n > CONFIG_FILE_MAX)
		return error_set(err, EFBIG, "%s: longer than %d bytes", file, CONFIG_FILE_MAX);
	if (memchr(text, '\0', n))
		return error_set(err, EINVAL, "%s: not a text file", file);
	text[n] = '\0';
	return (int)config_parse(config, file, text, complain, data);
}

static void format_default(const struct setting *s, char *text, size_t size)
{
	struct config config;
	if (s->default_text) {
		snprintf(text, size, "%s", s->default_text);
		return;
	}
	config_default(&config);
	const void *field = (char *)&config + s->offset;
	uint64_t number = s->kind == KIND_PERCENT ? (uint64_t)(*(const double *)field * PCT(1) + 0.5)
						  : *(const uint64_t *)field;
	format_number(s, number, text, size);
}

void config_print_help(FILE *out)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		char value[CONFIG_PATH_MAX];
		format_default(&settings[i], value, sizeof(value));
		fprintf(out, "  %-19s %-18s %s\n", settings[i].name, value, settings[i].help);
	}
}
