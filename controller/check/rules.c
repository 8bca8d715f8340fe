#include "controller/check/rules.h"

#include "exporter/base/def.h"

const struct rule_info rule_info[RULES] = {
#define RULE(id, level, word, what, why, mend) [RULE_##id] = {RULE_##level, word, what, why, mend},
#include "controller/check/rules.def"
#undef RULE
};

WORD_TABLE(rule_level_word, enum rule_level, RULE_LEVELS,
           {[RULE_PROBLEM] = "problem", [RULE_WARNING] = "warning"});
