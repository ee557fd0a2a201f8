/*
 * base/list.h - doubly linked list whose links live in the members.
 *
 * A list head is a `struct list` that points to itself when empty.  A removed link points
 * to itself too, so removing it twice is harmless.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct list {
	struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
	l->prev = l->next = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_insert_before(struct list *at, struct list *l)
{
	l->prev = at->prev;
	l->next = at;
	at->prev->next = l;
	at->prev = l;
}

static inline void list_push_back(struct list *head, struct list *l)
{
	list_insert_before(head, l);
}

static inline void list_push_front(struct list *head, struct list *l)
{
	list_insert_before(head->next, l);
}

static inline void list_remove(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

#define list_entry(link, type, member) container_of(link, type, member)

/* `it` may be removed and freed inside the loop. */
#define list_each_safe(it, tmp, head)                                                              \
	for (struct list * (it) = (head)->next, *(tmp) = (it)->next; (it) != (head);               \
	     (it) = (tmp), (tmp) = (it)->next)
