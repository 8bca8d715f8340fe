/* write_relabel_configs, which select the series of an endpoint and change their labels: the actions and
 * semantics of Prometheus, with expressions of PCRE2. */
#ifndef DS_REMOTEWRITE_RELABEL_H
#define DS_REMOTEWRITE_RELABEL_H

#include "exporter/base/def.h"
#include "exporter/base/doc.h"
#include "exporter/base/problems.h"
#include "exporter/base/str.h"

struct regex_matcher;
struct relabel_rule;

struct relabel_rules {
    struct relabel_rule *list;
    size_t n;
};

struct label {
    struct str name, value;
};

enum { RELABEL_MAX_RULES = 64, LABELS_MAX = 128, LABEL_ROOM = 1 << 20 };

/* The labels of one series while they are put together: unique names in any order. Text made on the way is
 * stored in `room`, LABEL_ROOM bytes that do not move. */
struct label_list {
    struct str bad_name; /* after labels_pack() returned -EINVAL: the invalid name, if it was one */
    struct label list[LABELS_MAX];
    size_t n;
    char *room;
    size_t used;
    struct regex_matcher *matcher;
};

/* NULL without a label of this name. */
struct label *label_list_find(struct label_list *l, struct str name);
/* Reads a list of rules; problems go to p. 0 also with problems; -ENOMEM. Call relabel_done() in any case. */
MUST_USE int relabel_read(struct relabel_rules *ret, const struct node *list, struct problems *p);
void relabel_done(struct relabel_rules *r);
/* 1 if the series is kept, 0 if a rule drops it. -EFBIG for too many or too long labels, -ELOOP if an
 * expression exceeds its limits, -EINVAL for labels that are not UTF-8, -ENOMEM. */
MUST_USE int relabel_apply(const struct relabel_rules *r, struct label_list *l);

#endif
