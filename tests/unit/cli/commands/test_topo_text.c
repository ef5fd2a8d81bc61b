#include "../test.h"

#include "cli/commands/topo_text.h"

static char *render(const char *json)
{
	json_t *reply = json_loads(json, 0, NULL);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(reply);
	topo_text_write(reply, out);
	fclose(out);
	json_decref(reply);
	return text;
}

/* A pair on a switch and one card elsewhere, of which little is known. */
static void test_three(void **state)
{
	char *text = render("{\"devices\":["
			    "{\"index\":0,\"name\":\"A\",\"pci\":\"0000:1a:00.0\",\"numa\":0},"
			    "{\"index\":1,\"name\":\"A\",\"pci\":\"0000:1b:00.0\",\"numa\":0},"
			    "{\"index\":2,\"name\":\"B\",\"pci\":null,\"numa\":null}],"
			    "\"links\":[{\"devices\":[0,1],\"nvlinks\":4,\"pcie\":\"PIX\"},"
			    "{\"devices\":[0,2],\"nvlinks\":0,\"pcie\":\"SYS\"},"
			    "{\"devices\":[1,2],\"nvlinks\":0,\"pcie\":null}],"
			    "\"tree\":{\"pcie\":null,\"numa\":null,\"devices\":[0,1,2],\"groups\":["
			    "{\"pcie\":\"PHB\",\"numa\":0,\"devices\":[0,1],\"groups\":["
			    "{\"pcie\":\"PIX\",\"numa\":0,\"devices\":[0,1],\"groups\":[]}]}]}}");
	assert_string_equal(
		text, "distance unknown\n"
		      "  GPU2   -             B\n"
		      "  NUMA node 0: one host bridge (PHB)\n"
		      "    one PCIe switch (PIX)\n"
		      "      GPU0   0000:1a:00.0  A\n"
		      "      GPU1   0000:1b:00.0  A\n"
		      "\n"
		      "       GPU0   GPU1   GPU2   NUMA\n"
		      "GPU0   X      NV4    SYS    0\n"
		      "GPU1   NV4    X      ?      0\n"
		      "GPU2   SYS    ?      X      -\n"
		      "\n"
		      "NV#    number of NVLinks between the two GPUs; without, the path over PCIe:\n"
		      "PSB    on one board\n"
		      "PIX    one PCIe switch\n"
		      "PXB    several PCIe switches\n"
		      "PHB    one host bridge\n"
		      "NODE   several host bridges of one NUMA node\n"
		      "SYS    across NUMA nodes\n");
	free(text);
}

static void test_one(void **state)
{
	char *text = render("{\"devices\":[{\"index\":0,\"name\":\"A\"}],\"links\":[],"
			    "\"tree\":{\"devices\":[0],\"groups\":[]}}");
	assert_string_equal(text, "GPU0   -             A\n"
				  "\n"
				  "       GPU0   NUMA\n"
				  "GPU0   X      -\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three),
		cmocka_unit_test(test_one),
	};
	return cmocka_run_group_tests_name("topo_text", tests, NULL, NULL);
}
