/* What container engines answer: by the first byte docker's JSON, CRI's or containerd's protobuf, or HTTP. */
#include "fuzz.h"

#include "daemon/containers/engine/engine_http.h"
#include "daemon/containers/engine/engine_reply.h"

/* Of the containers in corpus/engine. */
static const char id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void check_printable(const char *text, size_t most)
{
	FUZZ_CHECK(strnlen(text, most) < most);
	for (; *text; text++)
		FUZZ_CHECK((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_name(const struct engine_name *name)
{
	check_printable(name->name, sizeof(name->name));
	check_printable(name->pod, sizeof(name->pod));
	check_printable(name->namespace, sizeof(name->namespace));
	check_printable(name->image, sizeof(name->image));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct engine_name name;
	size_t body;
	int r = -1;

	if (size < 1)
		return 0;
	char *text = fuzz_text(data + 1, size - 1);
	const unsigned char *bytes = (const unsigned char *)text;
	switch (data[0] % 4) {
	case 0: r = engine_reply_docker(text, size - 1, id, &name); break;
	case 1: r = engine_reply_cri(bytes, size - 1, id, &name); break;
	case 2: r = engine_reply_containerd(bytes, size - 1, id, &name); break;
	default:
		if (engine_http_parse(text, size - 1, &body) == 0)
			FUZZ_CHECK(body <= size - 1);
	}
	if (r == 0)
		check_name(&name);
	free(text);
	return 0;
}
