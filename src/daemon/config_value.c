/* The kinds of values that settings have: what each takes, and says where it is wrong. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "daemon/config/config.h"
#include "daemon/config/config_inside.h"
#include "daemon/export/metrics/names.h"
#include "http/address.h"
#include "policy/safety/health_policy.h"
#include "daemon/containers/engine/engine.h"

_Static_assert(sizeof(enum arbiter_policy) == sizeof(unsigned) &&
		       sizeof(enum feedback_control) == sizeof(unsigned) &&
		       sizeof(enum arbiter_sensor) == sizeof(unsigned) &&
		       sizeof(enum on_violation) == sizeof(unsigned) &&
		       sizeof(enum sharing_way) == sizeof(unsigned),
	       "a choice is written as an unsigned");

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
	[KIND_ON_VIOLATION] = { [ON_VIOLATION_REPORT] = "report",
				[ON_VIOLATION_FREEZE] = "freeze",
				[ON_VIOLATION_END] = "end" },
	[KIND_SHARING] = { [SHARING_TIME] = "time", [SHARING_SPACE] = "space", [SHARING_AUTO] = "auto" },
	[KIND_SPACE_CAPS] = { [SPACE_CAPS_GATE] = "gate", [SPACE_CAPS_THREADS] = "threads" },
	[KIND_VOCABULARY] = { [KUBE_VOCABULARY_SLICES] = "slices",
			      [KUBE_VOCABULARY_HAMI] = "hami",
			      [KUBE_VOCABULARY_GPU_MANAGER] = "gpu-manager" },
	[KIND_SENSOR] = { [ARBITER_SENSOR_BUSY] = "busy", [ARBITER_SENSOR_NVML] = "nvml" },
};

const char *config_policy_name(enum arbiter_policy policy)
{
	return choices[KIND_POLICY][policy];
}

static int set_choice(enum setting_kind kind, unsigned *field, const char *value, struct error *err)
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

void setting_format(const struct setting *s, uint64_t value, char *text, size_t size)
{
	if (s->kind == KIND_SIZE)
		snprintf(text, size, "%" PRIu64 "MiB", value / MIB);
	else if (s->kind == KIND_PERCENT)
		snprintf(text, size, "%g", (double)value / SETTING_PCT(1));
	else if (value % NSEC_PER_SEC == 0)
		snprintf(text, size, "%" PRIu64 "s", value / NSEC_PER_SEC);
	else if (value % NSEC_PER_MSEC == 0)
		snprintf(text, size, "%" PRIu64 "ms", value / NSEC_PER_MSEC);
	else
		snprintf(text, size, "%" PRIu64 "us", value / NSEC_PER_USEC);
}

/* No time at all is a duration of no request's, but may be a setting: 0, 0s, 0.0ms. */
static bool is_no_time(const char *value)
{
	static const char *const units[] = { "", "us", "ms", "s", "m", "h" };
	size_t digits = strspn(value, "0.");
	for (size_t i = 0; digits && i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(value + digits, units[i]))
			return true;
	return false;
}

static int set_number(const struct setting *s, uint64_t *field, const char *value, struct error *err)
{
	char low[32], high[32];
	uint64_t number;
	if (s->kind == KIND_SIZE && !strcmp(value, "auto") && !strcmp(s->default_text, "auto")) {
		*field = 0;
		return 0;
	}
	if (s->kind == KIND_DURATION && s->min == 0 && is_no_time(value)) {
		*field = 0;
		return 0;
	}
	int r = s->kind == KIND_SIZE ? parse_size(value, &number, err)
				     : parse_duration(value, &number, err);
	if (r < 0)
		return r;
	if (number < s->min || number > s->max) {
		setting_format(s, s->min, low, sizeof(low));
		setting_format(s, s->max, high, sizeof(high));
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
	if (pct * SETTING_PCT(1) < (double)s->min || pct * SETTING_PCT(1) > (double)s->max)
		return error_set(err, ERANGE, "'%s': must be from %g to %g", value,
				 (double)s->min / SETTING_PCT(1), (double)s->max / SETTING_PCT(1));
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

static int set_count(const struct setting *s, unsigned *field, const char *value, struct error *err)
{
	int64_t number;
	int r = parse_int(value, (int64_t)s->min, (int64_t)s->max, &number, err);
	if (r < 0)
		return r;
	*field = (unsigned)number;
	return 0;
}

static int set_factor(const struct setting *s, double *field, const char *value, struct error *err)
{
	double number;
	int r = parse_number(value, (double)s->min, (double)s->max, &number, err);
	if (r < 0)
		return r;
	if (number <= 0)
		return error_set(err, ERANGE, "'%s': must be above 0", value);
	*field = number;
	return 0;
}

static const char *const overcommit_words[] = { "warn", "refuse" };
static const char *const charge_words[] = { "daemon", "tenant" };
static const char *const switch_words[] = { "on", "off" };
static const char *const limit_words[] = { "soft", "hard" };

/* Two words, of which the first or the second means true. */
static int set_one_of_two(bool *field, const char *value, const char *const words[2], int which,
			  struct error *err)
{
	if (strcmp(value, words[0]) && strcmp(value, words[1]))
		return error_set(err, EINVAL, "'%.40s': must be %s or %s", value, words[0],
				 words[1]);
	*field = !strcmp(value, words[which]);
	return 0;
}

int setting_set(const struct setting *s, struct config *config, const char *value, struct error *err)
{
	char *field = (char *)config + s->offset;
	struct address address;
	int r;
	struct engines engines;
	struct health_ignored ignored;
	unsigned names;
	switch (s->kind) {
	case KIND_OVERCOMMIT:
		return set_one_of_two((bool *)(void *)field, value, overcommit_words, 1, err);
	case KIND_CHARGE: return set_one_of_two((bool *)(void *)field, value, charge_words, 1, err);
	case KIND_LEVEL: return set_level((enum log_level *)(void *)field, value, err);
	case KIND_POLICY:
	case KIND_CONTROL:
	case KIND_SENSOR:
	case KIND_VOCABULARY:
	case KIND_SHARING:
	case KIND_SPACE_CAPS:
	case KIND_ON_VIOLATION: return set_choice(s->kind, (unsigned *)(void *)field, value, err);
	case KIND_LIMIT: return set_one_of_two((bool *)(void *)field, value, limit_words, 1, err);
	case KIND_DURATION:
	case KIND_SIZE: return set_number(s, (uint64_t *)(void *)field, value, err);
	case KIND_PERCENT: return set_percent(s, (double *)(void *)field, value, err);
	case KIND_GAIN: return set_gain(s, (double *)(void *)field, value, err);
	case KIND_COUNT: return set_count(s, (unsigned *)(void *)field, value, err);
	case KIND_FACTOR: return set_factor(s, (double *)(void *)field, value, err);
	case KIND_SWITCH: return set_one_of_two((bool *)(void *)field, value, switch_words, 0, err);
	case KIND_ADDRESS:
		r = address_parse(value, &address, err);
		if (r < 0)
			return r;
		/* FALLTHROUGH */
	case KIND_ENGINES:
	case KIND_PLACE:
	case KIND_NAMES:
	case KIND_XIDS:
	case KIND_TEXT:
		if (s->kind == KIND_PLACE && *value != '/' && strcmp(value, s->default_text) != 0)
			return error_set(err, EINVAL, "'%.60s': must be %s, or a full path", value,
					 s->default_text);
		if (!*value || strlen(value) >= CONFIG_PATH_MAX)
			return error_set(err, EINVAL, "'%.40s': must be 1 to %d bytes", value,
					 CONFIG_PATH_MAX - 1);
		r = text_check(value, err);
		if (r < 0)
			return r;
		if (s->kind == KIND_ENGINES && engines_parse(value, &engines, err) < 0)
			return -EINVAL;
		if (s->kind == KIND_NAMES && metrics_names_parse(value, &names, err) < 0)
			return -EINVAL;
		if (s->kind == KIND_XIDS && health_parse_ignored(value, &ignored, err) < 0)
			return -EINVAL;
		strcpy(field, value);
		return 0;
	}
	return error_set(err, EINVAL, "setting of unknown kind");
}
