#include "sim/server/ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/client/link.h"

static int usage(void)
{
	fprintf(stderr, "allot-sim: --ctl needs one of: stats, xid CARD NUMBER, ecc CARD, "
			"lose CARD, heal CARD\n");
	return 2;
}

static int card_word(const char *word, uint32_t *ret_value)
{
	char *end;
	unsigned long value = strtoul(word, &end, 10);

	if (end == word || *end || value > 100000)
		return usage();
	*ret_value = (uint32_t)value;
	return 0;
}

int ctl_main(const char *socket_path, int words_n, char **words)
{
	static struct link link;
	struct sim_request_msg m = { 0 };
	uint32_t number = 0;
	void *payload = NULL;
	size_t bytes = 0;
	int r, wanted;

	if (words_n < 1)
		return usage();
	if (!strcmp(words[0], "stats"))
		m.type = SIM_CTL_STATS, wanted = 1;
	else if (!strcmp(words[0], "xid"))
		m.type = SIM_CTL_XID, wanted = 3;
	else if (!strcmp(words[0], "ecc"))
		m.type = SIM_CTL_ECC, wanted = 2;
	else if (!strcmp(words[0], "lose"))
		m.type = SIM_CTL_LOSE, wanted = 2;
	else if (!strcmp(words[0], "heal"))
		m.type = SIM_CTL_HEAL, wanted = 2;
	else
		return usage();
	if (words_n != wanted)
		return usage();
	if ((wanted > 1 && card_word(words[1], &m.card)) ||
	    (wanted > 2 && card_word(words[2], &number)))
		return 2;
	m.arg[0] = number;
	r = link_open(&link, socket_path, SIM_KIND_CTL);
	if (r < 0) {
		fprintf(stderr, "allot-sim: %s: %s\n", socket_path, strerror(-r));
		return 1;
	}
	r = link_call(&link, m, NULL, &payload, &bytes);
	if (payload)
		fwrite(payload, 1, bytes, stdout);
	free(payload);
	link_close(&link);
	if (r)
		fprintf(stderr, "allot-sim: %s\n", r == SIM_BAD_DEVICE ? "no such card" : "failed");
	return r ? 1 : 0;
}
