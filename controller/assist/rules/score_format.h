/* The names of score items: `scoreDimensionFormat`, such as "${app};${device}". */
#ifndef DS_ASSIST_RULES_SCORE_FORMAT_H
#define DS_ASSIST_RULES_SCORE_FORMAT_H

#endif
