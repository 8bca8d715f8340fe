/* Regular expressions of rules and queries: PCRE2, anchored at both ends, limited in time and memory. */
#pragma once

#include "exporter/base/buf.h"

enum { REGEX_MAX_BYTES = 1024, REGEX_MAX_GROUPS = 99, REGEX_WHY_BYTES = 192 };

/* A compiled expression. Immutable. */
struct regex;

/* -EINVAL with a reason that names the offset in the expression. */
MUST_USE int regex_new(struct regex **ret, struct str expression, char why[REGEX_WHY_BYTES]);
struct regex *regex_free(struct regex *x);

/* The working memory of matches and the groups of the last one. Not shared between threads. */
struct regex_matcher;

struct regex_matcher *regex_matcher_new(void);
struct regex_matcher *regex_matcher_free(struct regex_matcher *m);

/* 1 if the expression matches the whole subject, else 0. -ELOOP if the match exceeds its limits, -EINVAL
 * if the subject is not UTF-8, -ENOMEM. The subject must outlive the use of its groups. */
MUST_USE int regex_match(struct regex_matcher *m, const struct regex *x, struct str subject);
/* The text of a group of the last match, by number or by name; empty if the group is unset or unknown. */
struct str regex_group(const struct regex_matcher *m, struct str name);
/* Appends the text in lower or upper case, each character by Unicode. -EINVAL if it is not UTF-8, -EFBIG. */
MUST_USE int regex_change_case(struct str text, bool upper, struct buf *into);
