#include "base/settings/command_line.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NAME_MAX_BYTES 48
/* getopt_long() returns this + the index of an option: the program's own options, then those of setting_name() */
#define CODE_OPTION 256

void command_line_complain(void *program, const char *text)
{
	fprintf(stderr, "%s: %s\n", (const char *)program, text);
}

/* The index-th name of an option for a setting: former settings, then settings, then aliases. NULL after the last. */
static const char *setting_name(const struct command_line *line, size_t index, bool *ret_is_switch)
{
	size_t former = line->former ? line->former->count : 0;
	if (index < former) {
		*ret_is_switch = false;
		return line->former->row[index].name;
	}
	return settings_name(line->table, index - former, ret_is_switch);
}

/* For getopt_long(). Each setting has two spellings, with '-' and with '_'. */
static struct option *make_options(const struct command_line *line,
				   char (**ret_names)[NAME_MAX_BYTES])
{
	bool is_switch;
	size_t settings = 0, n = line->option_count;
	while (setting_name(line, settings, &is_switch))
		settings++;
	struct option *options = calloc(n + settings * 2 + 1, sizeof(*options));
	*ret_names = calloc(settings * 2, NAME_MAX_BYTES);
	if (!options || !*ret_names) {
		free(options);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		options[i] = (struct option){ line->option[i].name,
					      line->option[i].argument ? required_argument
								       : no_argument,
					      NULL, CODE_OPTION + (int)i };
	for (size_t i = 0; i < settings * 2; i++, n++) {
		char *name = (*ret_names)[i], from = i % 2 ? '-' : '_', to = i % 2 ? '_' : '-';
		snprintf(name, NAME_MAX_BYTES, "%s", setting_name(line, i / 2, &is_switch));
		for (char *c = name; *c; c++)
			*c = *c == from ? to : *c;
		options[n] = (struct option){ name,
					      is_switch ? optional_argument : required_argument,
					      NULL,
					      CODE_OPTION + (int)(line->option_count + i / 2) };
	}
	return options;
}

static int usage_error(const struct command_line *line, const char *text, const char *why)
{
	fprintf(stderr, "%s: %s: %s; see %s --help\n", line->program, text, why, line->program);
	return 1;
}

int command_line_read(const struct command_line *line, int argc, char **argv, void *data,
		      struct command_settings *settings)
{
	cleanup_free char(*names)[NAME_MAX_BYTES] = NULL;
	cleanup_free struct option *options = make_options(line, &names);
	int code;
	*settings = (struct command_settings){ .item = calloc((size_t)argc,
							      sizeof(*settings->item)) };
	if (!options || !settings->item) {
		command_line_complain((void *)line->program, "out of memory");
		return 1;
	}
	opterr = 0; /* getopt's own message would take two lines */
	while ((code = getopt_long(argc, argv, ":", options, NULL)) >= 0) {
		unsigned option = (unsigned)(code - CODE_OPTION);
		bool is_switch;
		if (code == ':')
			return usage_error(line, argv[optind - 1], "a value is missing");
		if (code == '?')
			return usage_error(line, argv[optind - 1],
					   "unknown option, or an option that takes no value");
		if (option < line->option_count) {
			int r = line->take(data, option, optarg);
			if (r >= 0)
				return r;
			continue;
		}
		settings->item[settings->count++] = (struct command_setting){
			setting_name(line, option - line->option_count, &is_switch),
			optarg ? optarg : "true"
		};
	}
	if (optind == argc)
		return -1;
	fprintf(stderr, "%s: '%s': unexpected argument; see %s --help\n", line->program,
		argv[optind], line->program);
	return 1;
}

static int load(const struct command_line *line, const char *file, struct config *config)
{
	struct error err = { 0 };
	int bad = settings_load(line->table, config, file, command_line_complain,
				(void *)line->program, &err);
	if (bad < 0)
		command_line_complain((void *)line->program, err.text);
	return bad;
}

int command_line_configure(const struct command_line *line, const struct command_settings *settings,
			   const char *file, struct config *config)
{
	struct error err = { 0 };
	if (file && load(line, file, config) != 0)
		return 1;
	for (unsigned i = 0; i < settings->count; i++) {
		const struct command_setting *s = &settings->item[i];
		if (settings_set(line->table, config, s->key, s->value, &err) >= 0)
			continue;
		error_add(&err, -err.code, "command line");
		command_line_complain((void *)line->program, err.text);
		return 1;
	}
	/* Check only now: the command line may correct a setting of the file. */
	return settings_check_all(line->table, config,
				  file && !settings->count ? file : "command line",
				  command_line_complain, (void *)line->program)
		       ? 1
		       : -1;
}

int command_line_check_file(const struct command_line *line, const char *file, struct config *config)
{
	int bad = load(line, file, config);
	if (bad < 0 ||
	    settings_check_all(line->table, config, file, command_line_complain,
			       (void *)line->program) ||
	    bad)
		return 1;
	printf("%s: all settings are valid\n", file);
	return 0;
}

void command_line_print_help(const struct command_line *line, const struct config *defaults)
{
	for (unsigned i = 0; i < line->option_count; i++) {
		const struct command_option *o = &line->option[i];
		char left[40];
		snprintf(left, sizeof(left), "--%s%s%s", o->name, o->argument ? " " : "",
			 o->argument ? o->argument : "");
		printf("  %-20s %s\n", left, o->help);
	}
	puts("\nSettings, their defaults and meaning. Write 'key = value' in a file of settings, or\n"
	     "--key VALUE, which overrides the file:");
	settings_print_help(line->table, defaults, stdout);
}
