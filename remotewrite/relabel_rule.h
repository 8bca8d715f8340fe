/* Private to relabel*.c: one rule. */
#ifndef DS_REMOTEWRITE_RELABEL_RULE_H
#define DS_REMOTEWRITE_RELABEL_RULE_H

#include "exporter/base/regex.h"

enum relabel_action {
    RELABEL_REPLACE,
    RELABEL_KEEP,
    RELABEL_DROP,
    RELABEL_LABELDROP, /* this one and those below are about label names */
    RELABEL_LABELKEEP,
    RELABEL_LABELMAP,
    RELABEL_ACTIONS
};

enum { RELABEL_MAX_SOURCES = 32 };

struct relabel_rule {
    enum relabel_action action;
    struct regex *regex;
    char *sources[RELABEL_MAX_SOURCES];
    size_t n_sources;
    char *separator, *target, *replacement;
};

#endif
