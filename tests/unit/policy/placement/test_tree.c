/* The tree of a node's PCIe. */
#include "layouts.h"

#include "policy/placement/tree.h"

static void check(const struct place_tree *tree, unsigned i, enum place_level level, int parent,
		  uint64_t cards, int numa)
{
	const struct place_group *group = &tree->group[i];

	assert_int_equal(group->level, level);
	assert_int_equal(group->parent, parent);
	assert_int_equal(group->cards, cards);
	assert_int_equal(group->numa_known, numa >= 0);
	if (numa >= 0)
		assert_int_equal(group->numa, numa);
}

static void two_sockets(void **state)
{
	struct place_node node = layout_node("pcie");
	struct place_tree tree;

	place_tree_fill(&tree, &node);
	assert_int_equal(tree.count, 7);
	check(&tree, 0, PLACE_LEVEL_SYS, -1, 0xff, -1);
	check(&tree, 1, PLACE_LEVEL_NODE, 0, 0x0f, 0);
	check(&tree, 2, PLACE_LEVEL_PIX, 1, 0x03, 0);
	check(&tree, 3, PLACE_LEVEL_PIX, 1, 0x0c, 0);
	check(&tree, 4, PLACE_LEVEL_NODE, 0, 0xf0, 1);
	check(&tree, 5, PLACE_LEVEL_PIX, 4, 0x30, 1);
	check(&tree, 6, PLACE_LEVEL_PIX, 4, 0xc0, 1);
}

/* Levels that differ in nothing are one; a card by itself is no group but where it is all. */
static void flat(void **state)
{
	struct place_node node = layout_node("h200x2"), one = layout_node("h200");
	struct place_tree tree;

	place_tree_fill(&tree, &node);
	assert_int_equal(tree.count, 1);
	check(&tree, 0, PLACE_LEVEL_SYS, -1, 3, -1);
	place_tree_fill(&tree, &one);
	assert_int_equal(tree.count, 1);
	check(&tree, 0, PLACE_LEVEL_PSB, -1, 1, 0);
	node.link[0][1].level = node.link[1][0].level = PLACE_LEVEL_UNKNOWN;
	place_tree_fill(&tree, &node);
	check(&tree, 0, PLACE_LEVEL_UNKNOWN, -1, 3, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(two_sockets), cmocka_unit_test(flat) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
