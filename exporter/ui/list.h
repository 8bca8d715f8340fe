/* Lists of the API in parts, as Kubernetes gives them. README.md has the promises. Loop thread. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/http/httpd.h"

enum { LIST_DEFAULT_LIMIT = 500 };

/* What a request asks for. */
struct list_query {
    size_t limit; /* SIZE_MAX: all */
    bool worst_first, with_history;
    const char *filter, *state; /* empty: all. Not owned */
    char *after;                /* the last name of the part before; NULL: from the start */
    unsigned after_rank;
};

/* All of it, in the order of names. */
static inline struct list_query list_query_all(void)
{
    return (struct list_query){.limit = SIZE_MAX, .filter = "", .state = ""};
}

/* -EINVAL for a parameter that cannot be used, which *ret_why then names. */
MUST_USE int list_query_read(struct list_query *ret, const struct httpd_request *rq, const char **ret_why);
void list_query_done(struct list_query *q);

/* Whether `filter` occurs in either text, ASCII letters in any case. */
bool list_matches(const struct list_query *q, const char *name, const char *other);
/* Whether `state` names this one. */
bool list_has_state(const struct list_query *q, const char *word);

struct list_item {
    const char *name; /* unique in its list */
    const void *what;
    unsigned rank; /* 0: the worst; only used with worst_first */
};

/* The part of a list that a query asks for. */
struct list {
    const struct list_query *query;
    struct list_item *items;
    size_t n;
    size_t behind; /* items that come after this part */
};

/* Adds an item that matched, in any order. */
void list_add(struct list *l, const char *name, unsigned rank, const void *what);
/* Puts the items in order and keeps those of this part, after the last list_add(). */
void list_sort(struct list *l);
void list_done(struct list *l);
/* "<key>":{"continue":...,"remainingItemCount":...} */
void list_metadata(struct buf *o, const char *key, const struct list *l);
