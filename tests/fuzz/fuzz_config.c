/* The settings and the tuning of the daemon: whatever a file says, each line is applied or complained about. */
#include "fuzz.h"

#include "daemon/config/config.h"

static void complain(void *data, const char *text)
{
	FUZZ_CHECK(text[0] && !strchr(text, '\n'));
	++*(unsigned *)data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config defaults;
	static bool has_defaults;
	char *text = fuzz_text(data, size);

	if (!has_defaults)
		config_default(&defaults);
	has_defaults = true;
	const struct settings_table *tables[] = { &config_settings, &config_tuning };
	for (size_t i = 0; i < 2; i++) {
		struct config config = defaults;
		unsigned complaints = 0;
		unsigned bad = settings_parse(tables[i], &config, "file", text, complain,
					      &complaints);
		bad += settings_check_all(tables[i], &config, "file", complain, &complaints);
		FUZZ_CHECK(bad == complaints);
	}
	free(text);
	return 0;
}
