/* The lines of a file of settings or of tuning. A setting may have another program's name (config_foreign.h). */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/config/config.h"
#include "daemon/config/config_foreign.h"
#include "daemon/config/config_inside.h"
#include "daemon/containers/trust/trust.h"
#include "daemon/export/metrics/metrics.h"
#include "daemon/export/page/page.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/kubelet/plugin/plugin.h"

#define CONFIG_FILE_MAX 65536

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

/* Tuning of which the first may not be above the second. */
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
		const struct setting *less = setting_find(&config_tuning, ordered[i][0]);
		const struct setting *more = setting_find(&config_tuning, ordered[i][1]);
		const void *low = (const char *)config + less->offset;
		const void *high = (const char *)config + more->offset;
		char low_text[32], high_text[32];
		struct error err = { 0 };
		if (*(const uint64_t *)low <= *(const uint64_t *)high)
			continue;
		setting_format(less, *(const uint64_t *)low, low_text, sizeof(low_text));
		setting_format(more, *(const uint64_t *)high, high_text, sizeof(high_text));
		error_set(&err, EINVAL, "%s: %s: '%s' is above %s, '%s'", file, less->name,
			  low_text, more->name, high_text);
		complain(data, err.text);
		bad++;
	}
	return bad;
}

static unsigned check_parts(const struct config *config, const char *file, config_complain complain,
			    void *data)
{
	static int (*const checks[])(const struct config *config,
				     struct error *err) = { metrics_check, page_check, plugin_check,
							    node_kube_check, trust_check_settings };
	unsigned bad = 0;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		struct error err = { 0 };
		int r = checks[i](config, &err);
		if (r >= 0)
			continue;
		error_add(&err, r, "%s", file);
		complain(data, err.text);
		bad++;
	}
	return bad;
}

unsigned config_check(const struct config *config, const char *where, config_complain complain,
		      void *data)
{
	return check_order(config, where, complain, data) +
	       check_parts(config, where, complain, data);
}

/* Of a name that the table does not have: the remedy depends on whether the other table has it. */
static int refuse_name(enum config_table table, const char *key, struct error *err)
{
	char value[CONFIG_PATH_MAX];
	const struct setting *tuning = setting_find(&config_tuning, key);
	if (table == CONFIG_TUNING)
		return setting_find(setting_tables[CONFIG_SETTINGS], key)
			       ? error_set(err, EINVAL,
					   "%s: is a setting: write it to the file of --config", key)
			       : error_set(err, EINVAL,
					   "%.60s: no such tuning (allotd --list-tuning lists it)",
					   key);
	if (!tuning)
		return error_set(err, EINVAL, "%.60s: no such setting (allotd --help lists them)",
				 key);
	setting_format_default(tuning, value, sizeof(value));
	return error_set(err, EINVAL,
			 "%s: is no setting any more: its value is %s; remove it (allotd --tuning, "
			 "for developers, can change it)",
			 key, value);
}

static int set_value(enum config_table table, struct config *config, const char *key,
		     const char *value, struct error *err)
{
	const struct setting *s = setting_find(setting_tables[table], key);
	int r = -ENOENT;
	if (s) {
		r = setting_set(s, config, value, err);
		return r < 0 ? error_add(err, r, "%s", key) : 0;
	}
	if (table == CONFIG_SETTINGS)
		r = config_foreign_set(config, key, value, err);
	return r == -ENOENT ? refuse_name(table, key, err) : r;
}

int config_set(struct config *config, const char *key, const char *value, struct error *err)
{
	return set_value(CONFIG_SETTINGS, config, key, value, err);
}

static int parse_line(enum config_table table, struct config *config, char *line, struct error *err)
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
	return set_value(table, config, trim(line), trim(equals + 1), err);
}

unsigned config_parse(enum config_table table, struct config *config, const char *file,
		      const char *text, config_complain complain, void *data)
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
			r = parse_line(table, config, line, &err);
		}
		if (r < 0) {
			bad++;
			error_add(&err, r, "%s:%u", file, number);
			complain(data, err.text);
		}
		text += length + (text[length] == '\n');
	}
	return bad + (table == CONFIG_TUNING ? check_order(config, file, complain, data)
					     : check_parts(config, file, complain, data));
}

int config_load(enum config_table table, struct config *config, const char *file,
		config_complain complain, void *data, struct error *err)
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
	return (int)config_parse(table, config, file, text, complain, data);
}
