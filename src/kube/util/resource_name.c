#include "kube/util/resource_name.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define NAME_MAX_BYTES 63
#define DOMAIN_MAX_BYTES 253
#define RESERVED "kubernetes.io"

static bool is_small_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_letter_or_digit(char c)
{
	return is_small_or_digit(c) || (c >= 'A' && c <= 'Z');
}

/* A domain is labels joined by dots. A label begins and ends with a letter or digit. */
static bool is_domain(const char *text, size_t size)
{
	if (!size || size > DOMAIN_MAX_BYTES)
		return false;
	for (size_t i = 0; i < size; i++) {
		bool is_edge = i == 0 || i + 1 == size || text[i - 1] == '.' || text[i + 1] == '.';
		if (!is_small_or_digit(text[i]) && (is_edge || (text[i] != '-' && text[i] != '.')))
			return false;
	}
	return true;
}

static bool is_name(const char *text)
{
	size_t size = strlen(text);
	if (!size || size > NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < size; i++) {
		bool is_edge = i == 0 || i + 1 == size;
		if (!is_letter_or_digit(text[i]) && (is_edge || !strchr("-._", text[i])))
			return false;
	}
	return true;
}

static bool is_reserved(const char *domain, size_t size)
{
	size_t n = strlen(RESERVED);
	return size >= n && !memcmp(domain + size - n, RESERVED, n) &&
	       (size == n || domain[size - n - 1] == '.');
}

int resource_name_check(const char *name, struct error *err)
{
	const char *slash = strchr(name, '/');
	if (!slash || !is_domain(name, (size_t)(slash - name)) || !is_name(slash + 1))
		return error_set(err, EINVAL,
				 "'%.100s': must be a domain and a name, such as nvidia.com/gpu",
				 name);
	if (is_reserved(name, (size_t)(slash - name)))
		return error_set(err, EINVAL,
				 "'%.100s': must be of another domain than kubernetes.io", name);
	return 0;
}
