#include "sim/server/spec.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "sim/server/layouts.h"
#include "sim/server/spec_inside.h"

#define MIB (1024ull * 1024)
#define SPEC_MAX_BYTES (256 * 1024)
#define OLD_SECTION "[card]" /* name of [gpu] in version 0.1.0; still accepted */

int spec_fail(const struct spec_at *at, const char *format, ...)
{
	va_list args;
	int n = 0;

	if (at->line)
		n = snprintf(at->error, at->error_size, "%s:%u: ", at->origin, at->line);
	else
		n = snprintf(at->error, at->error_size, "%s: ", at->origin);
	va_start(args, format);
	if (n >= 0 && (size_t)n < at->error_size)
		vsnprintf(at->error + n, at->error_size - (size_t)n, format, args);
	va_end(args);
	return -EINVAL;
}

/* FNV-1a from a given start value. Two fixed start values give the two halves of a UUID. */
static uint64_t hash(const char *text, uint64_t start)
{
	start = fnv64(start, text, strlen(text));
	/* The last bytes of the text barely affect the high bits of FNV's result, so mix all bits (the end of splitmix64). */
	start = (start ^ start >> 30) * 0xbf58476d1ce4e5b9ull;
	start = (start ^ start >> 27) * 0x94d049bb133111ebull;
	return start ^ start >> 31;
}

static void uuid_text(struct sim_card_info *info, const char *prefix)
{
	const unsigned char *b = info->uuid_bytes;

	snprintf(info->uuid, sizeof(info->uuid),
		 "%s%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", prefix,
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
}

void spec_make_uuid(struct sim_card_info *info, const char *prefix, const char *seed, uint32_t index)
{
	char text[128];

	snprintf(text, sizeof(text), "allot-sim %s %u", seed, index);
	uint64_t a = hash(text, FNV64_BEGIN);
	uint64_t b = hash(text, 0x9ae16a3b2f90404full);
	memcpy(info->uuid_bytes, &a, 8);
	memcpy(info->uuid_bytes + 8, &b, 8);
	info->uuid_bytes[6] = (info->uuid_bytes[6] & 0x0f) | 0x40; /* RFC 4122: version 4 */
	info->uuid_bytes[8] = (info->uuid_bytes[8] & 0x3f) | 0x80;
	uuid_text(info, prefix);
}

static void pci_text(struct sim_card_info *info)
{
	snprintf(info->pci, sizeof(info->pci), "%08X:%02X:%02X.0", info->pci_domain, info->pci_bus,
		 info->pci_device);
}

static void card_default(struct spec_card *card, const char *seed, uint32_t index)
{
	static const unsigned char buses[8] = { 0x18, 0x2a, 0x3a, 0x5d, 0x9a, 0xab, 0xba, 0xdb };

	memset(card, 0, sizeof(*card));
	strcpy(card->info.name, "NVIDIA H200");
	card->info.memory_bytes = 143771 * MIB;
	card->info.context_bytes = 518 * MIB;
	card->info.block_bytes = 2 * MIB;
	card->info.copy_bytes_per_s = 55404578406ull; /* 51.6 GiB/s, pinned, measured */
	card->info.set_bytes_per_s = 2000000000000ull;
	/* NVIDIA's figure for NVLink versions 2 to 4 */
	card->info.nvlink_bytes_per_s = 25000000000ull;
	card->info.sms = 132;
	/* Measured: a kernel with one block of 256 threads per SM takes 0.57 of the GPU (256 / 449). */
	card->info.busy_threads = 449;
	card->info.cc_major = 9;
	card->info.numa = 0;
	card->info.pci_domain = index / 8;
	card->info.pci_bus = buses[index % 8];
	pci_text(&card->info);
	spec_make_uuid(&card->info, "GPU-", seed, index);
	card->slice_ns = 2090000;
	/* Measured with five tenants: slices of 2.09 ms, each followed by a gap of 0.19 ms. */
	card->gap_ns = 190000;
	/* From one context's last kernel to another's first (docs/decisions/turn-lengths.md). */
	card->switch_ns = 155000;
}

/* A number without a unit is multiplied by `scale`. Only sizes (is_bytes) may have a unit, such as MiB. */
static int number(const struct spec_at *at, const char *key, const char *text, bool is_bytes,
		  uint64_t scale, uint64_t max, uint64_t *ret_value)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} units[] = { { "B", 1 }, { "KiB", 1024 }, { "MiB", MIB }, { "GiB", 1024 * MIB } };
	char *end;
	uint64_t factor = scale;

	errno = 0;
	double value = strtod(text, &end);
	if (end == text || errno || !(value >= 0) || !isdigit((unsigned char)text[0]))
		return spec_fail(at, "%s: '%s' is not a number", key, text);
	while (*end == ' ')
		end++;
	if (*end) {
		size_t i;

		for (i = 0; i < sizeof(units) / sizeof(*units); i++)
			if (is_bytes && !strcmp(end, units[i].name))
				break;
		if (i == sizeof(units) / sizeof(*units))
			return spec_fail(at,
					 is_bytes ? "%s: '%s': the unit must be B, KiB, MiB or GiB"
						  : "%s: '%s': must be a number without a unit",
					 key, text);
		factor = units[i].factor;
	}
	if (value * (double)factor > (double)max)
		return spec_fail(at, "%s: '%s': must be at most %" PRIu64, key, text, max / scale);
	*ret_value = (uint64_t)(value * (double)factor);
	return 0;
}

static int set_uuid(const struct spec_at *at, struct spec_card *card, const char *value)
{
	unsigned char bytes[16];
	const char *p = value;
	int n = 0;

	if (strncmp(p, "GPU-", 4) == 0)
		p += 4;
	for (; *p && n < 32; p++) {
		char c = (char)tolower((unsigned char)*p);
		int digit;

		if (c == '-')
			continue;
		if (!isxdigit((unsigned char)c))
			break;
		digit = c <= '9' ? c - '0' : c - 'a' + 10;
		bytes[n / 2] = (unsigned char)(n % 2 ? bytes[n / 2] << 4 | digit : digit);
		n++;
	}
	if (n != 32 || *p)
		return spec_fail(at,
				 "uuid: '%s' is not like GPU-01234567-89ab-cdef-0123-456789abcdef",
				 value);
	memcpy(card->info.uuid_bytes, bytes, 16);
	uuid_text(&card->info, "GPU-");
	return 0;
}

static int set_pci(const struct spec_at *at, struct spec_card *card, const char *value)
{
	unsigned int domain, bus, device;
	int end = 0;

	if (sscanf(value, "%8x:%2x:%2x.0%n", &domain, &bus, &device, &end) != 3 || !end ||
	    value[end] || device > 31)
		return spec_fail(at, "pci: '%s' is not like 0000:18:00.0", value);
	card->info.pci_domain = domain;
	card->info.pci_bus = bus;
	card->info.pci_device = device;
	pci_text(&card->info);
	return 0;
}

static int set_defects(const struct spec_at *at, struct spec_card *card, const char *value)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} names[] = {
		{ "no-process-utilization", SIM_DEFECT_NO_PROCESS_UTILIZATION },
		{ "loses-busy-process", SIM_DEFECT_LOSES_BUSY_PROCESS },
		{ "no-process-memory", SIM_DEFECT_NO_PROCESS_MEMORY },
		{ "no-samples", SIM_DEFECT_NO_SAMPLES },
		{ "no-utilization", SIM_DEFECT_NO_UTILIZATION },
		{ "no-ecc", SIM_DEFECT_NO_ECC },
	};
	const char *p = value;

	while (*p) {
		size_t n = strcspn(p, ", "), i;

		for (i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (strlen(names[i].name) == n && !strncmp(names[i].name, p, n))
				break;
		if (i == sizeof(names) / sizeof(*names))
			return spec_fail(
				at, "defects: '%.*s' is not known: allot-sim(5) lists the defects",
				(int)n, p);
		card->info.defects |= names[i].bit;
		p += n;
		while (*p == ' ' || *p == ',')
			p++;
	}
	return 0;
}

/* A key's place and size in struct spec_card. */
#define PLACE(field) offsetof(struct spec_card, field), sizeof(((struct spec_card *)0)->field)

static int set_number(const struct spec_at *at, struct spec_card *card, const char *key,
		      const char *value)
{
	static const struct {
		const char *key;
		size_t offset, width;
		bool is_bytes;
		uint64_t scale, min, max;
	} rows[] = {
		{ "memory", PLACE(info.memory_bytes), true, 1, 16 * MIB, 1ull << 44 },
		{ "context", PLACE(info.context_bytes), true, 1, 0, 1ull << 40 },
		{ "block", PLACE(info.block_bytes), true, 1, 4096, 1ull << 30 },
		{ "sms", PLACE(info.sms), false, 1, 1, 100000 },
		{ "slice_us", PLACE(slice_ns), false, 1000, 1000, 1ull << 40 },
		{ "gap_us", PLACE(gap_ns), false, 1000, 0, 1ull << 40 },
		{ "switch_us", PLACE(switch_ns), false, 1000, 0, 1ull << 40 },
		{ "numa", PLACE(info.numa), false, 1, 0, 1024 },
		{ "copy_bytes_s", PLACE(info.copy_bytes_per_s), true, 1, 1, 1ull << 60 },
		{ "set_bytes_s", PLACE(info.set_bytes_per_s), true, 1, 1, 1ull << 60 },
		{ "nvlink_bytes_s", PLACE(info.nvlink_bytes_per_s), true, 1, 1, 1ull << 60 },
		{ "far_bytes_s", PLACE(info.far_bytes_per_s), true, 1, 1, 1ull << 60 },
		{ "busy_threads", PLACE(info.busy_threads), false, 1, 1, 2048 },
	};
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows) && strcmp(rows[i].key, key); i++)
		;
	if (i == sizeof(rows) / sizeof(*rows))
		return spec_fail(at, "'%s' is not a key of [gpu]: allot-sim(5) lists the keys", key);
	int r = number(at, key, value, rows[i].is_bytes, rows[i].scale, rows[i].max, &v);
	if (r < 0)
		return r;
	if (v < rows[i].min)
		return spec_fail(at, "%s: '%s': must be at least %" PRIu64, key, value,
				 rows[i].min / rows[i].scale);
	if (!strcmp(key, "block") && v & (v - 1))
		return spec_fail(at, "block: '%s' is not a power of two", value);
	memcpy((char *)card + rows[i].offset, &v, rows[i].width); /* little endian */
	return 0;
}

static int set(const struct spec_at *at, struct spec_card *card, const char *key, const char *value)
{
	char rest;

	if (!*value)
		return spec_fail(at, "%s: no value", key);
	if (!strcmp(key, "name")) {
		if (strlen(value) >= sizeof(card->info.name))
			return spec_fail(at, "name: longer than %zu bytes",
					 sizeof(card->info.name) - 1);
		strcpy(card->info.name, value);
		return 0;
	}
	if (!strcmp(key, "uuid"))
		return set_uuid(at, card, value);
	if (!strcmp(key, "pci"))
		return set_pci(at, card, value);
	if (!strcmp(key, "nvlink"))
		return spec_set_nvlink(at, card, value);
	if (!strcmp(key, "pcie"))
		return spec_set_pcie(at, card, value);
	if (!strcmp(key, "mig"))
		return spec_set_mig(at, card, value);
	if (!strcmp(key, "defects"))
		return set_defects(at, card, value);
	if (!strcmp(key, "cc")) {
		if (sscanf(value, "%2d.%1d%c", &card->info.cc_major, &card->info.cc_minor, &rest) !=
		    2)
			return spec_fail(at, "cc: '%s' is not like 9.0", value);
		return 0;
	}
	if (!strcmp(key, "numa") && !strcmp(value, "none")) {
		card->info.numa = -1;
		return 0;
	}
	return set_number(at, card, key, value);
}

static char *trim(char *text)
{
	size_t n;

	while (isspace((unsigned char)*text))
		text++;
	for (n = strlen(text); n && isspace((unsigned char)text[n - 1]);)
		text[--n] = '\0';
	return text;
}

static int check(const struct spec_at *at, const struct spec *spec)
{
	for (uint32_t i = 0; i < spec->cards_n; i++) {
		const struct sim_card_info *card = &spec->cards[i].info;

		if (card->context_bytes > card->memory_bytes)
			return spec_fail(at, "GPU %u: context must not be larger than memory", i);
		for (uint32_t j = 0; j < spec->cards_n; j++) {
			const struct sim_card_info *other = &spec->cards[j].info;

			if (j < i && !memcmp(card->uuid_bytes, other->uuid_bytes, 16))
				return spec_fail(at, "GPUs %u and %u have the same uuid", j, i);
			if (j < i && !strcmp(card->pci, other->pci))
				return spec_fail(at, "GPUs %u and %u have the same pci address", j,
						 i);
		}
	}
	return 0;
}

/* A GPU without a UUID gets one made from `seed` and its index, so that it is the same on every machine. */
static int parse(struct spec *ret_spec, const char *text, const char *seed, const char *origin,
		 char *error, size_t error_size)
{
	struct spec_at at = { origin, 0, error, error_size };
	struct spec *spec = calloc(1, sizeof(*spec));
	char *copy = strdup(text), *rest = copy, *line;
	int r = spec && copy ? 0 : -ENOMEM;

	if (r < 0)
		snprintf(error, error_size, "out of memory");
	while (r == 0 && (line = strsep(&rest, "\n"))) {
		char *value;

		at.line++;
		line[strcspn(line, "#")] = '\0';
		line = trim(line);
		if (!*line)
			continue;
		if (!strcmp(line, "[gpu]") || !strcmp(line, OLD_SECTION)) {
			if (spec->cards_n == SIM_MAX_CARDS) {
				r = spec_fail(
					&at,
					"more than %d GPUs: leave out [gpu] sections from here on",
					SIM_MAX_CARDS);
			} else {
				card_default(&spec->cards[spec->cards_n], seed, spec->cards_n);
				spec->cards_n++;
			}
			continue;
		}
		value = strchr(line, '=');
		if (line[0] == '[')
			r = spec_fail(&at, "section '%s' is not known: only [gpu] is", line);
		else if (!value)
			r = spec_fail(&at, "'%s' is not 'key = value'", line);
		else if (!spec->cards_n)
			r = spec_fail(
				&at,
				"'%s' is before the first [gpu]: begin the file with a line [gpu]",
				line);
		if (r < 0)
			break;
		*value++ = '\0';
		r = set(&at, &spec->cards[spec->cards_n - 1], trim(line), trim(value));
	}
	at.line = 0;
	if (r == 0 && !spec->cards_n)
		r = spec_fail(&at, "the file has no [gpu] section: it needs one for each GPU");
	if (r == 0)
		r = spec_finish_links(&at, spec);
	if (r == 0)
		r = check(&at, spec);
	if (r == 0)
		r = spec_finish_mig(&at, spec);
	if (r == 0)
		*ret_spec = *spec;
	free(copy);
	free(spec);
	return r;
}

int spec_parse(struct spec *ret_spec, const char *text, const char *origin, char *error,
	       size_t error_size)
{
	return parse(ret_spec, text, "file", origin, error, error_size);
}

static int load_file(struct spec *ret_spec, const char *path, char *error, size_t error_size)
{
	char *text = malloc(SPEC_MAX_BYTES + 1);
	FILE *file = fopen(path, "re");
	size_t n;
	int r;

	if (!text || !file) {
		r = file ? -ENOMEM : -errno;
		if (r == -ENOENT)
			snprintf(error, error_size,
				 "'%s': no GPU of that name, and no such file; write for example "
				 "h200, h200x2, or the path of a description",
				 path);
		else
			snprintf(error, error_size, "%s: can't be read: %s", path, strerror(-r));
	} else {
		n = fread(text, 1, SPEC_MAX_BYTES + 1, file);
		r = ferror(file) ? -EIO : n > SPEC_MAX_BYTES ? -EFBIG : 0;
		if (r == 0 && memchr(text, '\0', n))
			r = -EINVAL;
		if (r < 0)
			snprintf(error, error_size, "%s: not a description file: %s", path,
				 r == -EFBIG    ? "it is larger than 256 KiB"
				 : r == -EINVAL ? "it contains a NUL byte"
						: strerror(-r));
		else
			text[n] = '\0', r = spec_parse(ret_spec, text, path, error, error_size);
	}
	if (file)
		fclose(file);
	free(text);
	return r;
}

int spec_load(struct spec *ret_spec, const char *what, char *error, size_t error_size)
{
	const char *layout = layout_find(what);
	unsigned int cards = 0;
	char rest;

	if (layout)
		return parse(ret_spec, layout, what, what, error, error_size);
	if (!strcmp(what, "h200"))
		cards = 1;
	else if (sscanf(what, "h200x%2u%c", &cards, &rest) != 1)
		return load_file(ret_spec, what, error, error_size);
	if (cards < 1 || cards > SIM_MAX_CARDS) {
		snprintf(error, error_size, "%s: must be 1 to %d GPUs", what, SIM_MAX_CARDS);
		return -EINVAL;
	}
	memset(ret_spec, 0, sizeof(*ret_spec));
	ret_spec->cards_n = cards;
	for (uint32_t i = 0; i < cards; i++) {
		struct spec_card *card = &ret_spec->cards[i];

		card_default(card, what, i);
		card->info.numa = cards > 1 && i >= cards / 2;
		card->info.peers = ((1u << cards) - 1) & ~(1u << i);
		card->info.switched = cards > 2;
		for (uint32_t j = 0; j < cards; j++)
			card->info.links[j] = i == j ? 0 : SIM_LINKS;
	}
	return 0;
}
