/* A configuration document, YAML 1.1 (libyaml) or JSON, as a tree of nodes with line and column. For
 * configuration only, not for data.
 *
 * Plain YAML scalars are typed by the core schema (null, true, false, decimal integers, floats); quoted ones
 * are strings. Aliases, merge keys, tags other than !!str and !!int, and keys that are not scalars are
 * errors. */
#ifndef DS_BASE_DOC_H
#define DS_BASE_DOC_H

#include "exporter/base/memory.h"
#include "exporter/base/problems.h"

enum node_kind {
    NODE_NULL,
    NODE_BOOL,
    NODE_INT,
    NODE_DOUBLE,
    NODE_STRING,
    NODE_LIST,
    NODE_MAP,
    NODE_BROKEN /* an invalid value, already reported: getters add no further problem */
};

struct node {
    enum node_kind kind;
    unsigned line, column; /* column: in characters for YAML, in bytes for JSON */
    struct str key;        /* if the parent is a map */
    unsigned key_line, key_column;
    struct str text; /* of a scalar, with escapes replaced; terminated */
    struct node **items;
    size_t n;
    struct node *parent;
    size_t index; /* in the parent */
};

struct doc;

enum { DOC_MAX_DEPTH = 32, DOC_MAX_NODES = 200000 };

/* Parses the text, which need not outlive the call: strict JSON if it starts with `{` or `[` after white
 * space, else YAML. An empty document is one null. Problems (syntax, duplicate keys, aliases, exceeded
 * limits, several documents, ill-formed UTF-8) are added to p. Returns 0 and sets *ret if there is a tree,
 * despite any problems; else -EINVAL. */
MUST_USE int doc_parse(struct doc **ret, struct str text, struct problems *p);
struct doc *doc_free(struct doc *d);
DEFINE_CLEANUP(struct doc, doc_free)
const struct node *doc_root(const struct doc *d);

/* The member of a map, or NULL. */
const struct node *node_get(const struct node *map, const char *key);
/* Like node_get(), but also returns NULL for an explicit null. */
const struct node *node_given(const struct node *map, const char *key);
/* The value of a NODE_INT; false for other kinds and on overflow. */
bool node_to_int(const struct node *n, int64_t *ret);
/* Adds a problem at the node: "<path>: <text>". */
void node_problem(const struct node *n, struct problems *p, enum problem_kind kind, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Like node_problem(), at the key of a map's member. */
void node_key_problem(const struct node *n, struct problems *p, enum problem_kind kind, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* The name that the key is probably a misspelling of; NULL if none is near. `known` ends with NULL. */
const char *name_nearest(struct str key, const char *const *known);
/* Adds an error at the node: "<path>: expected <what>, got <value>". */
void node_expected(const struct node *n, struct problems *p, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Adds an error at the map: "<path>.<key>: missing, expected <what>". */
void node_missing(const struct node *map, const char *key, struct problems *p, const char *what);

/* Typed getters: return true and leave *ret unchanged if the member is absent or null; add a problem and
 * return false on a wrong type, a value out of bounds, or a string with a NUL. */
bool node_str(const struct node *map, const char *key, struct problems *p, struct str *ret);
/* The string in the arena, terminated; NULL if it is empty, too, and after a problem. */
char *node_text(const struct node *map, const char *key, struct problems *p, struct arena *a);
/* The index of the NULL-terminated word that the string is, in any case; 0 if it is empty, too, and after a
 * problem. */
unsigned node_choice(const struct node *map, const char *key, struct problems *p, const char *const *words);
/* The member, an object whose keys are all `known` (NULL: any); NULL if it is absent, and after a problem. */
const struct node *node_object(const struct node *map, const char *key, const char *const *known,
                               struct problems *p);
bool node_bool(const struct node *map, const char *key, struct problems *p, bool *ret);
bool node_int(const struct node *map, const char *key, struct problems *p, int64_t min, int64_t max,
              int64_t *ret);
/* A count of bytes: an integer, or a string with KiB, MiB, GiB, KB, MB, GB. */
bool node_bytes(const struct node *map, const char *key, struct problems *p, uint64_t min, uint64_t max,
                uint64_t *ret);
/* Milliseconds: a number of seconds, or a duration in Prometheus' syntax: 500ms, 30s, 5m, 1h30m, 1d. */
bool node_duration(const struct node *map, const char *key, struct problems *p, int64_t min_ms,
                   int64_t max_ms, int64_t *ret_ms);
/* The same from a text: "90", "1.5", "30s", "1h30m". False for others. */
bool duration_parse(struct str text, int64_t *ret_ms);
/* Adds a problem for every key that is not in the NULL-terminated list, with the nearest known name if one is
 * close ("did you mean"). */
void node_only_keys(const struct node *map, const char *const *known, enum problem_kind kind,
                    struct problems *p);

#endif
