/* The rules that a scoring API follows, as a table. rules.def says what each means. */
#ifndef DS_CHECK_RULES_H
#define DS_CHECK_RULES_H

enum rule_level { RULE_PROBLEM, RULE_WARNING, RULE_LEVELS };

enum rule {
#define RULE(id, level, word, what, why, mend) RULE_##id,
#include "controller/check/rules.def"
#undef RULE
    RULES
};

struct rule_info {
    enum rule_level level;
    const char *word; /* its id for people */
    const char *what, *why, *mend;
};

extern const struct rule_info rule_info[RULES];

/* "problem", "warning". */
const char *rule_level_word(enum rule_level level);

#endif
