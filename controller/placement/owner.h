/* Whose an AddOnPlacementScore is, by its label and annotations:
 *
 *     labels:
 *       dynamic-scoring.open-cluster-management.io/managed-by: agent
 *     annotations:
 *       dynamic-scoring.open-cluster-management.io/owner: dynamic-scoring/dynamic-scoring-framework
 *       dynamic-scoring.open-cluster-management.io/score-name: CPU_load
 *
 * An owner is "<namespace>/<add-on>": the agent of an add-on, installed in that namespace of its cluster. The
 * label is what watches select by. Several score names may lead to one name of an object, so an annotation
 * has the score's as it is. Pure; any thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define SCORE_DOMAIN           "dynamic-scoring.open-cluster-management.io"
#define SCORE_LABEL            SCORE_DOMAIN "/managed-by"
#define SCORE_LABEL_VALUE      "agent"
#define SCORE_OWNER_ANNOTATION SCORE_DOMAIN "/owner"
#define SCORE_NAME_ANNOTATION  SCORE_DOMAIN "/score-name"

bool object_is_labelled(const json_t *object);
/* Whether an object is this owner's: by its annotation, or without one by its label. */
bool object_is_ours(const json_t *object, const char *owner);
/* Whether it is that of the same add-on in another namespace. */
bool object_is_of_other_namespace(const json_t *object, const char *owner);
/* Whether it is of an agent of this add-on, in whatever namespace. */
bool object_is_of_add_on(const json_t *object, const char *add_on);
/* Whom an object that is not ours names as its owner: another agent, an owner reference, another add-on or
 * tool. NULL for nobody, as with objects of the reference implementation. On the heap. */
char *object_owner(const json_t *object);
/* Sets label and annotations. */
void metadata_set_ours(json_t *metadata, const char *owner, const char *score_name);
