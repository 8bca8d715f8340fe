/* A configuration document in YAML 1.1 (libyaml), or JSON, as a tree of nodes with line and column. Plain
 * scalars are typed by the core schema (null, true, false, decimal integers, floats); quoted ones are text.
 * Aliases, merge keys, tags other than !!str and !!int, and keys that are not scalars are errors. */
#pragma once

#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/log.h"

/* ---- Problems: errors and warnings, each with file, line, column, field, and what was expected ---- */

enum problem_kind { PROBLEM_ERROR, PROBLEM_WARNING };

struct doc_problem {
    enum problem_kind kind;
    bool missing;          /* the field at `path` is required and absent */
    unsigned line, column; /* from 1; 0 where there is none (flags, whole file) */
    char *text;            /* "summaries[2].scoringInterval: expected ..., got ..." */
    struct str path;       /* part of text: "summaries[2].scoringInterval"; empty for the whole document */
    struct str message;    /* part of text: "expected ..., got ..." */
};

struct problems {
    char *file;            /* as shown in front: path, or "configmap ns/name" */
    const char *configmap; /* "ns/name", a part of `file`; NULL: it is a path */
    struct doc_problem *list;
    size_t n;
    size_t errors;   /* errors only, also those left out */
    size_t left_out; /* errors and warnings after the first 10,000 */
};

void problems_init(struct problems *p, const char *file);
/* Likewise of a ConfigMap, "namespace/name". */
void problems_init_configmap(struct problems *p, const char *name);
void problems_done(struct problems *p);
void problems_add(struct problems *p, enum problem_kind kind, unsigned line, unsigned column, const char *fmt,
                  ...) PRINTF_LIKE(5, 6);
/* Adds a problem of one field. The strings of *at are ignored: path and message are copied. */
void problems_add_field(struct problems *p, const struct doc_problem *at, struct str path,
                        struct str message);
/* Sorts by line and column. */
void problems_sort(struct problems *p);
/* "file:line:column: error: text\n" for each, as compilers write them. */
void problems_print(const struct problems *p, struct buf *into);
/* file=PATH, or for a text from a cluster configmap=NAMESPACE/NAME. Valid as long as p. */
struct log_field problems_origin(const struct problems *p);
/* Logs each with its place. */
void problems_log(const struct problems *p);
/* Appends the user's text in quotes: cut after 80 bytes, control characters escaped, and without the parts of
 * a URL that may be secret (user, password, query). */
void problem_quote(struct str text, struct buf *into);
/* Appends the NULL-terminated words as "a, b or c". */
void problem_choices(const char *const *words, struct buf *into);

/* ---- Nodes ---- */

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
    unsigned line, column; /* column: in characters */
    struct str key;        /* if the parent is a map */
    unsigned key_line, key_column;
    struct str text; /* of a scalar, with escapes replaced; terminated */
    struct node **items;
    size_t n;
    struct node *parent;
    size_t index; /* in the parent */
};

struct doc {
    struct node *root;
    struct arena memory;
};

enum { DOC_MAX_DEPTH = 32, DOC_MAX_NODES = 200000 };

/* Parses the text, which need not outlive the call. An empty document is one null. Problems (syntax,
 * duplicate keys, aliases, exceeded limits, several documents, ill-formed UTF-8) are added to p. Returns 0
 * and sets *ret if there is a tree, despite any problems; else -EINVAL. */
MUST_USE int doc_parse(struct doc **ret, struct str text, struct problems *p);
struct doc *doc_free(struct doc *d);
DEFINE_CLEANUP(struct doc, doc_free)

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
/* Adds an error at the node: "<path>: expected <what>, got <value>". Returns false. */
bool node_expected(const struct node *n, struct problems *p, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Adds an error at the map: "<path>.<key>: missing, expected <what>". */
void node_missing(const struct node *map, const char *key, struct problems *p, const char *what);

/* Typed getters: return true and leave *ret unchanged if the member is absent or null; add a problem and
 * return false on a wrong type, a value out of bounds, or a string with a NUL. */
bool node_str(const struct node *map, const char *key, struct problems *p, struct str *ret);
/* The string in the arena, terminated; NULL if it is empty, too, and after a problem. */
char *node_text(const struct node *map, const char *key, struct problems *p, struct arena *a);
/* The index of the string in `words` (NULL-terminated), ignoring case; 0 if it is empty or a problem. */
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
/* Adds a problem for every key that is not `known` (ends with NULL), with name_nearest(). */
void node_only_keys(const struct node *map, const char *const *known, enum problem_kind kind,
                    struct problems *p);
