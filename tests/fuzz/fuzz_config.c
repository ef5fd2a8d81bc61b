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
	for (enum config_table table = 0; table < CONFIG_TABLES; table++) {
		struct config config = defaults;
		unsigned complaints = 0;
		unsigned bad = config_parse(table, &config, "file", text, complain, &complaints);
		FUZZ_CHECK(bad == complaints);
	}
	free(text);
	return 0;
}
