/* The errors and warnings of a configuration, each with file, line, column, field, and what was expected. */
#ifndef DS_BASE_PROBLEMS_H
#define DS_BASE_PROBLEMS_H

#include "exporter/base/buf.h"
#include "exporter/base/log.h"

enum problem_kind { PROBLEM_ERROR, PROBLEM_WARNING };

/* Problems kept; further ones are only counted. */
enum { PROBLEMS_MAX = 10000 };

struct problem {
    enum problem_kind kind;
    bool missing;          /* the field at `path` is required and absent */
    unsigned line, column; /* from 1; 0 where there is none (flags, whole file) */
    char *text;            /* "summaries[2].scoringInterval: expected ..., got ..." */
    struct str path;       /* part of text: "summaries[2].scoringInterval"; empty for the whole document */
    struct str message;    /* part of text: "expected ..., got ..." */
};

struct problems {
    char *file; /* as shown in front: path, or "configmap ns/name" */
    struct problem *list;
    size_t n;
    size_t errors;   /* errors only, including those past PROBLEMS_MAX */
    size_t left_out; /* errors and warnings past PROBLEMS_MAX */
};

void problems_init(struct problems *p, const char *file);
void problems_done(struct problems *p);
void problems_add(struct problems *p, enum problem_kind kind, unsigned line, unsigned column, const char *fmt,
                  ...) PRINTF_LIKE(5, 6);
/* Adds a problem of one field. The strings of *at are ignored: path and message are copied. */
void problems_add_field(struct problems *p, const struct problem *at, struct str path, struct str message);
/* Sorts by line and column. */
void problems_sort(struct problems *p);
/* "file:line:column: error: text\n" for each, as compilers write them. */
MUST_USE int problems_print(const struct problems *p, struct buf *into);

/* file=PATH, or for a text from a cluster configmap=NAMESPACE/NAME. Valid as long as p. */
struct log_field problems_origin(const struct problems *p);
/* Logs each with its place. */
void problems_log(const struct problems *p);

/* Appends the user's text in quotes: cut after 80 bytes, control characters escaped, and without the parts of
 * a URL that may be secret (user, password, query). -ENOMEM, -EFBIG. */
MUST_USE int problem_quote(struct str text, struct buf *into);
/* Appends the NULL-terminated words as "a, b or c". -ENOMEM, -EFBIG. */
MUST_USE int problem_choices(const char *const *words, struct buf *into);

#endif
