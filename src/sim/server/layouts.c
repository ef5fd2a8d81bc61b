#include "sim/server/layouts.h"

#include <stddef.h>
#include <string.h>

/* Copies to the host run at four fifths of the nominal rate of 16 lanes of PCIe 3.0 or 4.0. */
/* clang-format off */
static const char dgx_1v[] =
	"[gpu]\nname = Tesla V100-SXM2-32GB\nmemory = 32768 MiB\nsms = 80\n"
	"copy_bytes_s = 12500000000\n"
	"cc = 7.0\npci = 0000:06:00.0\nnuma = 0\npcie = 0/0\nnvlink = 1:1, 2:1, 3:2, 4:2\n"
	"[gpu]\nname = Tesla V100-SXM2-32GB\nmemory = 32768 MiB\nsms = 80\n"
	"copy_bytes_s = 12500000000\n"
	"cc = 7.0\npci = 0000:07:00.0\nnuma = 0\npcie = 0/0\nnvlink = 0:1, 2:2, 3:1, 5:2\n"
	"[gpu]\nname = Tesla V100-SXM2-32GB\nmemory = 32768 MiB\nsms = 80\n"
	"copy_bytes_s = 12500000000\n"
	"cc = 7.0\npci = 0000:0a:00.0\nnuma = 0\npcie = 0/1\nnvlink = 0:1, 1:2, 3:2, 6:1\n"
	"[gpu]\nname = Tesla V100-SXM2-32GB\nmemory = 32768 MiB\nsms = 80\n"
	"copy_bytes_s = 12500000000\n"
	"cc = 7.0\npci = 0000:0b:00.0\nnuma = 0\npcie = 0/1\nnvlink = 0:2, 1:1, 2:2, 7:1\n"
	"[gpu]\nname = Tesla V100-SXM2-32GB\nmemory = 32768 MiB\nsms = 80\n"
	"copy_bytes_s = 12500000000\n"
	"cc = 7.0\npci = 0000:85:00.0\nnuma = 1\npcie = 1/0\nnvlink = 0:2, 5:1, 6:1, 7:2\n"
	"[gpu]\nname = Tesla V100-SXM2-32GB\nmemory = 32768 MiB\nsms = 80\n"
	"copy_bytes_s = 12500000000\n"
	"cc = 7.0\npci = 0000:86:00.0\nnuma = 1\npcie = 1/0\nnvlink = 1:2, 4:1, 6:2, 7:1\n"
	"[gpu]\nname = Tesla V100-SXM2-32GB\nmemory = 32768 MiB\nsms = 80\n"
	"copy_bytes_s = 12500000000\n"
	"cc = 7.0\npci = 0000:89:00.0\nnuma = 1\npcie = 1/1\nnvlink = 2:1, 4:1, 5:2, 7:2\n"
	"[gpu]\nname = Tesla V100-SXM2-32GB\nmemory = 32768 MiB\nsms = 80\n"
	"copy_bytes_s = 12500000000\n"
	"cc = 7.0\npci = 0000:8a:00.0\nnuma = 1\npcie = 1/1\nnvlink = 3:1, 4:2, 5:1, 6:2\n";

static const char dgx_a100[] =
	"[gpu]\nname = NVIDIA A100-SXM4-80GB\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:07:00.0\nnuma = 3\npcie = 0/0/0\nnvlink = switch:12\n"
	"[gpu]\nname = NVIDIA A100-SXM4-80GB\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:0f:00.0\nnuma = 3\npcie = 0/0/1\nnvlink = switch:12\n"
	"[gpu]\nname = NVIDIA A100-SXM4-80GB\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:47:00.0\nnuma = 1\npcie = 1/0/0\nnvlink = switch:12\n"
	"[gpu]\nname = NVIDIA A100-SXM4-80GB\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:4e:00.0\nnuma = 1\npcie = 1/0/1\nnvlink = switch:12\n"
	"[gpu]\nname = NVIDIA A100-SXM4-80GB\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:87:00.0\nnuma = 7\npcie = 2/0/0\nnvlink = switch:12\n"
	"[gpu]\nname = NVIDIA A100-SXM4-80GB\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:90:00.0\nnuma = 7\npcie = 2/0/1\nnvlink = switch:12\n"
	"[gpu]\nname = NVIDIA A100-SXM4-80GB\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:b7:00.0\nnuma = 5\npcie = 3/0/0\nnvlink = switch:12\n"
	"[gpu]\nname = NVIDIA A100-SXM4-80GB\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:bd:00.0\nnuma = 5\npcie = 3/0/1\nnvlink = switch:12\n";

static const char pcie[] =
	"[gpu]\nname = NVIDIA A40\nmemory = 46068 MiB\nsms = 84\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.6\npci = 0000:1a:00.0\nnuma = 0\npcie = 0/0\n"
	"[gpu]\nname = NVIDIA A40\nmemory = 46068 MiB\nsms = 84\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.6\npci = 0000:1b:00.0\nnuma = 0\npcie = 0/0\n"
	"[gpu]\nname = NVIDIA A40\nmemory = 46068 MiB\nsms = 84\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.6\npci = 0000:3d:00.0\nnuma = 0\npcie = 1/0\n"
	"[gpu]\nname = NVIDIA A40\nmemory = 46068 MiB\nsms = 84\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.6\npci = 0000:3e:00.0\nnuma = 0\npcie = 1/0\n"
	"[gpu]\nname = NVIDIA A40\nmemory = 46068 MiB\nsms = 84\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.6\npci = 0000:9a:00.0\nnuma = 1\npcie = 2/0\n"
	"[gpu]\nname = NVIDIA A40\nmemory = 46068 MiB\nsms = 84\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.6\npci = 0000:9b:00.0\nnuma = 1\npcie = 2/0\n"
	"[gpu]\nname = NVIDIA A40\nmemory = 46068 MiB\nsms = 84\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.6\npci = 0000:bd:00.0\nnuma = 1\npcie = 3/0\n"
	"[gpu]\nname = NVIDIA A40\nmemory = 46068 MiB\nsms = 84\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.6\npci = 0000:be:00.0\nnuma = 1\npcie = 3/0\n";

static const char mixed[] =
	"[gpu]\nname = NVIDIA A100 80GB PCIe\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:17:00.0\nnuma = 0\npcie = 0/0\nnvlink = 1:12\n"
	"[gpu]\nname = NVIDIA A100 80GB PCIe\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:31:00.0\nnuma = 0\npcie = 0/0\nnvlink = 0:12\n"
	"[gpu]\nname = NVIDIA A100 80GB PCIe\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:4b:00.0\nnuma = 0\npcie = 1/0\nnvlink = 3:12\n"
	"[gpu]\nname = NVIDIA A100 80GB PCIe\nmemory = 81920 MiB\nsms = 108\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.0\npci = 0000:65:00.0\nnuma = 0\npcie = 1/0\nnvlink = 2:12\n"
	"[gpu]\nname = NVIDIA L40S\nmemory = 46068 MiB\nsms = 142\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.9\npci = 0000:98:00.0\nnuma = 1\npcie = 2/0\n"
	"[gpu]\nname = NVIDIA L40S\nmemory = 46068 MiB\nsms = 142\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.9\npci = 0000:b1:00.0\nnuma = 1\npcie = 2/0\n"
	"[gpu]\nname = NVIDIA L40S\nmemory = 46068 MiB\nsms = 142\n"
	"copy_bytes_s = 25000000000\n"
	"cc = 8.9\npci = 0000:ca:00.0\nnuma = 1\npcie = 3/0\n"
	"[gpu]\nname = Tesla T4\nmemory = 15360 MiB\nsms = 40\n"
	"copy_bytes_s = 12500000000\n"
	"cc = 7.5\npci = 0000:e3:00.0\nnuma = 1\npcie = 3/0\n";

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
