#include "net/grpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum grpc_status grpc_status_parse(const char *value, size_t size)
{
	unsigned n = 0;
	if (size == 0 || size > 2 || (size == 2 && value[0] == '0'))
		return GRPC_UNKNOWN;
	for (size_t i = 0; i < size; i++) {
		if (value[i] < '0' || value[i] > '9')
			return GRPC_UNKNOWN;
		n = n * 10 + (unsigned)(value[i] - '0');
	}
	return n <= GRPC_STATUS_LAST ? (enum grpc_status)n : GRPC_UNKNOWN;
}

void grpc_text_encode(const char *text, char ret_value[GRPC_CODED_TEXT_MAX])
{
	static const char digits[] = "0123456789ABCDEF";
	char *to = ret_value;
	for (size_t i = 0; text[i] && i < GRPC_TEXT_MAX - 1; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c >= ' ' && c <= '~' && c != '%') {
			*to++ = (char)c;
		} else {
			*to++ = '%';
			*to++ = digits[c >> 4];
			*to++ = digits[c & 15];
		}
	}
	*to = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void grpc_text_decode(const char *value, size_t size, char ret_text[GRPC_TEXT_MAX])
{
	size_t n = 0;
	for (size_t i = 0; i < size && n < GRPC_TEXT_MAX - 1; i++) {
		bool is_code = value[i] == '%' && i + 2 < size && digit(value[i + 1]) >= 0 &&
			       digit(value[i + 2]) >= 0;
		char c = is_code ? (char)(digit(value[i + 1]) << 4 | digit(value[i + 2])) : value[i];
		i += is_code ? 2 : 0;
		/* A NUL would end the text too early. */
		ret_text[n++] = c ? c : '?';
	}
	ret_text[n] = '\0';
}

int grpc_timeout_parse(const char *value, size_t size, uint64_t *ret_ns)
{
	static const struct {
		char unit;
		uint64_t ns;
	} units[] = { { 'n', 1 },
		      { 'u', NSEC_PER_USEC },
		      { 'm', NSEC_PER_MSEC },
		      { 'S', NSEC_PER_SEC },
		      { 'M', 60 * NSEC_PER_SEC },
		      { 'H', 3600 * NSEC_PER_SEC } };
	uint64_t n = 0;
	if (size < 2 || size > 9)
		return -EINVAL;
	for (size_t i = 0; i < size - 1; i++) {
		if (value[i] < '0' || value[i] > '9')
			return -EINVAL;
		n = n * 10 + (uint64_t)(value[i] - '0');
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].unit == value[size - 1]) {
			/* A limit, so that adding the value to a clock can't overflow. */
			*ret_ns = n > GRPC_TIMEOUT_MOST_NS / units[i].ns ? GRPC_TIMEOUT_MOST_NS
									 : n * units[i].ns;
			return 0;
		}
	return -EINVAL;
}

bool grpc_is_content_type(const char *value, size_t size)
{
	static const char type[] = "application/grpc";
	size_t n = sizeof(type) - 1;
	return size >= n && !memcmp(value, type, n) &&
	       (size == n || value[n] == '+' || value[n] == ';');
}

void grpc_head_write(uint8_t head[GRPC_HEAD_BYTES], uint32_t size)
{
	head[0] = 0;
	head[1] = (uint8_t)(size >> 24);
	head[2] = (uint8_t)(size >> 16);
	head[3] = (uint8_t)(size >> 8);
	head[4] = (uint8_t)size;
}

static int take_head(struct grpc_inbox *inbox, size_t most_bytes)
{
	const uint8_t *h = inbox->head;
	inbox->size = (size_t)h[1] << 24 | (size_t)h[2] << 16 | (size_t)h[3] << 8 | h[4];
	if (h[0])
		return -EOPNOTSUPP;
	return inbox->size > most_bytes ? -EMSGSIZE : 0;
}

/* The room grows as bytes arrive, because the announced length is untrusted. */
static int make_room(struct grpc_inbox *inbox, size_t wanted)
{
	if (wanted <= inbox->room)
		return 0;
	size_t room = inbox->room * 2 > wanted ? inbox->room * 2 : wanted;
	room = room < inbox->size ? room : inbox->size;
	uint8_t *data = realloc(inbox->data, room);
	if (!data)
		return -ENOMEM;
	inbox->data = data;
	inbox->room = room;
	return 0;
}

int grpc_inbox_take(struct grpc_inbox *inbox, const uint8_t *data, size_t size, size_t most_bytes)
{
	while (size && inbox->head_size < GRPC_HEAD_BYTES) {
		inbox->head[inbox->head_size++] = *data++;
		size--;
		if (inbox->head_size == GRPC_HEAD_BYTES) {
			int r = take_head(inbox, most_bytes);
			if (r < 0)
				return r;
		}
	}
	if (!size)
		return 0;
	if (size > inbox->size - inbox->have)
		return -EPROTO;
	int r = make_room(inbox, inbox->have + size);
	if (r < 0)
		return r;
	memcpy(inbox->data + inbox->have, data, size);
	inbox->have += size;
	return 0;
}

bool grpc_inbox_is_complete(const struct grpc_inbox *inbox)
{
	return inbox->head_size == GRPC_HEAD_BYTES && inbox->have == inbox->size;
}

void grpc_inbox_free(struct grpc_inbox *inbox)
{
	free(inbox->data);
	*inbox = (struct grpc_inbox){ 0 };
}
