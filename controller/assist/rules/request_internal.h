/* Private to request*.c: reads members of a JSON document; the first that is wrong is the objection. */
#ifndef DS_ASSIST_RULES_REQUEST_INTERNAL_H
#define DS_ASSIST_RULES_REQUEST_INTERNAL_H

#include "controller/assist/rules/request.h"
#include "exporter/ui/members.h"

struct reading {
    struct objection *ob;
    struct arena *arena;
    bool no_memory;
};

/* A value, and its name: "clusters[1].availablePolicies[0]". */
struct place {
    json_t *value; /* NULL: absent, or null */
    char path[160];
};

enum { REQUIRED = 1 };

/* All below return absent values after an objection or when out of memory, so that callers need not look. */

bool reading_failed(const struct reading *rd);
/* Objects to a place: "expected <what>, got a string". */
void reading_expected(struct reading *rd, const struct place *at, const char *what);
struct place reading_member(struct reading *rd, const struct place *map, const char *key, bool is_required);
struct place reading_item(const struct place *list, size_t i);
/* The value must be an object with these members, a NULL-terminated list, and no others. */
void reading_object(struct reading *rd, const struct place *at, const char *const *known);
/* The value is absent, or a list of `min` to `max` items. Their number. */
size_t reading_list(struct reading *rd, const struct place *at, size_t min, size_t max);
/* n elements, zeroed. */
void *reading_alloc(struct reading *rd, size_t n, size_t size);
const char *reading_string(struct reading *rd, const struct place *at);
/* The name of an object of Kubernetes. */
const char *reading_name(struct reading *rd, const struct place *at);
double reading_number(struct reading *rd, const struct place *at, double min, double max, double absent);
bool reading_bool(struct reading *rd, const struct place *at);
/* A list of names without duplicates. */
struct request_names reading_names(struct reading *rd, const struct place *at, size_t min, size_t max);
/* Objects to a name that occurs twice in a table of structs that begin with their name. */
void reading_unique(struct reading *rd, const struct place *list, const char *member, const void *table,
                    size_t n, size_t size);

#endif
