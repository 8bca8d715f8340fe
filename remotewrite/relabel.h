/* Relabelling: rules, and the labels of one series to which they apply. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/regex.h"

struct relabel_rules {
    struct relabel_rule *list;
    size_t n;
};

struct label {
    struct str name, value;
};

/* Whether Prometheus takes it as the name of a label, or of a metric. */
bool label_is_name(struct str s);
bool label_is_metric_name(struct str s);

enum { LABELS_MAX = 128 };

/* Unique names in any order. An empty value is no label, before and after each rule. */
struct label_list {
    struct label list[LABELS_MAX];
    size_t n;
    struct buf room; /* text made on the way: its ceiling was allocated at once, so that it does not move */
    struct regex_matcher *matcher;
};

/* NULL without a label of this name. */
struct label *label_list_find(struct label_list *l, struct str name);
/* Adds a label whose name is new, unless the value is empty. -EFBIG. */
MUST_USE int label_list_add(struct label_list *l, struct str name, struct str value);

/* Applies all rules: 0, or 1 if one drops the series. -EFBIG for too many or too long labels, -ELOOP if an
 * expression exceeds its limits, -EINVAL for labels that are not UTF-8. */
MUST_USE int relabel_apply(const struct relabel_rules *rules, struct label_list *l);

/* Reads a list of rules into the arena; problems go to p. Call relabel_done() in any case. */
void relabel_read(struct relabel_rules *ret, const struct node *list, struct problems *p, struct arena *a);
void relabel_done(struct relabel_rules *r);
