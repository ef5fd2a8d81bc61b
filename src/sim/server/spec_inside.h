/* Shared by the files that read a description: spec.c, spec_links.c and spec_mig.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sim_card_info;
struct spec;
struct spec_card;

/* The parser's position in the description, and the buffer for an error. */
struct spec_at {
	const char *origin;
	unsigned int line; /* 0: after the last line */
	char *error;
	size_t error_size;
};

/* Writes one line to at->error and returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int spec_fail(const struct spec_at *at, const char *format,
						    ...);

int spec_set_nvlink(const struct spec_at *at, struct spec_card *card, const char *value);
int spec_set_pcie(const struct spec_at *at, struct spec_card *card, const char *value);

/* Call when all GPUs are known. Links those with `nvlink = switch`. Fails if a link's two ends do not name each other. */
int spec_finish_links(const struct spec_at *at, struct spec *spec);

/* spec_finish_mig() adds an entry for each instance. Call it when all GPUs are known and linked. */
int spec_set_mig(const struct spec_at *at, struct spec_card *card, const char *value);
int spec_finish_mig(const struct spec_at *at, struct spec *spec);

/* Sets uuid_bytes and uuid (with `prefix`) to a UUID that depends only on seed and index. */
void spec_make_uuid(struct sim_card_info *info, const char *prefix, const char *seed,
		    uint32_t index);
