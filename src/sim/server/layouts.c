#include "sim/server/layouts.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
#define MODEL(name, mib, sms, cc, copy_bytes_s) \
	"[gpu]\nname = " name "\nmemory = " #mib " MiB\nsms = " #sms "\ncc = " #cc \
	"\ncopy_bytes_s = " #copy_bytes_s "\n"
#define AT(bus, numa, pcie) "pci = 0000:" bus ":00.0\nnuma = " #numa "\npcie = " pcie "\n"
#define NVLINK(links) "nvlink = " links "\n"

/* Copies to the host run at four fifths of the nominal rate of 16 lanes of PCIe 3.0 or 4.0. */
#define V100 MODEL("Tesla V100-SXM2-32GB", 32768, 80, 7.0, 12500000000)
#define A100_SXM MODEL("NVIDIA A100-SXM4-80GB", 81920, 108, 8.0, 25000000000)
#define A40 MODEL("NVIDIA A40", 46068, 84, 8.6, 25000000000)
#define A100_PCIE MODEL("NVIDIA A100 80GB PCIe", 81920, 108, 8.0, 25000000000)
#define L40S MODEL("NVIDIA L40S", 46068, 142, 8.9, 25000000000)
#define T4 MODEL("Tesla T4", 15360, 40, 7.5, 12500000000)

static const char dgx_1v[] =
	V100 AT("06", 0, "0/0") NVLINK("1:1, 2:1, 3:2, 4:2")
	V100 AT("07", 0, "0/0") NVLINK("0:1, 2:2, 3:1, 5:2")
	V100 AT("0a", 0, "0/1") NVLINK("0:1, 1:2, 3:2, 6:1")
	V100 AT("0b", 0, "0/1") NVLINK("0:2, 1:1, 2:2, 7:1")
	V100 AT("85", 1, "1/0") NVLINK("0:2, 5:1, 6:1, 7:2")
	V100 AT("86", 1, "1/0") NVLINK("1:2, 4:1, 6:2, 7:1")
	V100 AT("89", 1, "1/1") NVLINK("2:1, 4:1, 5:2, 7:2")
	V100 AT("8a", 1, "1/1") NVLINK("3:1, 4:2, 5:1, 6:2");

static const char dgx_a100[] =
	A100_SXM AT("07", 3, "0/0/0") NVLINK("switch:12")
	A100_SXM AT("0f", 3, "0/0/1") NVLINK("switch:12")
	A100_SXM AT("47", 1, "1/0/0") NVLINK("switch:12")
	A100_SXM AT("4e", 1, "1/0/1") NVLINK("switch:12")
	A100_SXM AT("87", 7, "2/0/0") NVLINK("switch:12")
	A100_SXM AT("90", 7, "2/0/1") NVLINK("switch:12")
	A100_SXM AT("b7", 5, "3/0/0") NVLINK("switch:12")
	A100_SXM AT("bd", 5, "3/0/1") NVLINK("switch:12");

static const char pcie[] =
	A40 AT("1a", 0, "0/0")
	A40 AT("1b", 0, "0/0")
	A40 AT("3d", 0, "1/0")
	A40 AT("3e", 0, "1/0")
	A40 AT("9a", 1, "2/0")
	A40 AT("9b", 1, "2/0")
	A40 AT("bd", 1, "3/0")
	A40 AT("be", 1, "3/0");

static const char mixed[] =
	A100_PCIE AT("17", 0, "0/0") NVLINK("1:12")
	A100_PCIE AT("31", 0, "0/0") NVLINK("0:12")
	A100_PCIE AT("4b", 0, "1/0") NVLINK("3:12")
	A100_PCIE AT("65", 0, "1/0") NVLINK("2:12")
	L40S AT("98", 1, "2/0")
	L40S AT("b1", 1, "2/0")
	L40S AT("ca", 1, "3/0")
	T4 AT("e3", 1, "3/0");

static const char h200_mig[] =
	"[gpu]\npci = 0000:18:00.0\nnuma = 0\nmig = 3g.71gb, 2g.35gb, 1g.18gb\n"
	"[gpu]\npci = 0000:2a:00.0\nnuma = 0\n";

/* clang-format on */

const char *layout_find(const char *name)
{
	static const struct {
		const char *name, *text;
	} layouts[] = {
		{ "dgx-1v", dgx_1v }, { "dgx-a100", dgx_a100 }, { "pcie", pcie },
		{ "mixed", mixed },   { "h200-mig", h200_mig },
	};

	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (!strcmp(layouts[i].name, name))
			return layouts[i].text;
	return NULL;
}
