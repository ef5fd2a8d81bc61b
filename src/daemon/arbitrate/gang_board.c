#include "daemon/arbitrate/gang_board.h"

#include <pthread.h>
#include <stdlib.h>

#include "daemon/arbitrate/doorbell.h"

struct gangs {
	pthread_mutex_t lock; /* guards `board` */
	struct gang_board *board;
	pthread_mutex_t cards_lock; /* guards `wake_word` */
	_Atomic uint32_t *wake_word[GANG_MAX_DEVICES];
};

struct gangs *gangs_new(void)
{
	struct gangs *g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->board = gang_board_new();
	if (!g->board) {
		free(g);
		return NULL;
	}
	pthread_mutex_init(&g->lock, NULL);
	pthread_mutex_init(&g->cards_lock, NULL);
	return g;
}

struct gangs *gangs_free(struct gangs *g)
{
	if (!g)
		return NULL;
	gang_board_free(g->board);
	pthread_mutex_destroy(&g->lock);
	pthread_mutex_destroy(&g->cards_lock);
	free(g);
	return NULL;
}

void gangs_set_card(struct gangs *g, unsigned card, _Atomic uint32_t *wake_word)
{
	pthread_mutex_lock(&g->cards_lock);
	if (card < GANG_MAX_DEVICES)
		g->wake_word[card] = wake_word;
	pthread_mutex_unlock(&g->cards_lock);
}

void gangs_wake(struct gangs *g, uint64_t cards)
{
	pthread_mutex_lock(&g->cards_lock);
	for (unsigned i = 0; i < GANG_MAX_DEVICES; i++)
		if (cards >> i & 1 && g->wake_word[i])
			doorbell_wake(g->wake_word[i]);
	pthread_mutex_unlock(&g->cards_lock);
}

int gangs_add(struct gangs *g)
{
	int gang = gang_add(gangs_lock(g));
	gangs_unlock(g);
	return gang;
}

void gangs_remove(struct gangs *g, int gang)
{
	gang_remove(gangs_lock(g), gang);
	gangs_unlock(g);
}

struct gang_board *gangs_lock(struct gangs *g)
{
	pthread_mutex_lock(&g->lock);
	return g->board;
}

void gangs_unlock(struct gangs *g)
{
	pthread_mutex_unlock(&g->lock);
}
