/* JSON Schema 2020-12 of what POST /optimize and /plan take and answer. The reader of requests
 * (rules/request.c) relies on it, and knows which members exclude each other. */
#ifndef DS_ASSIST_OPERATIONS_PLAN_SCHEMA_H
#define DS_ASSIST_OPERATIONS_PLAN_SCHEMA_H

#include "controller/assist/api/operation.h"

/* clang-format off */
#define PLAN_SCORE_NAME \
    SCHEMA("addonPlacementScore": {"type": "string", "minLength": 1, "maxLength": 253, "description":) \
    SCHEMA_TEXT("Name of an AddOnPlacementScore, which each cluster of the request has in its namespace on " \
                "the hub.") SCHEMA(},)
#define PLAN_SCORE_FORMAT \
    SCHEMA("scoreDimensionFormat": {"type": "string", "minLength": 1, "description":) \
    SCHEMA_TEXT("Names of the score's items, such as ${app};${device}. ${app} is the workload's label app, " \
                "${device} the policy's label resource-supply-device; other placeholders match any text.") \
    SCHEMA(})
#define PLAN_RULES \
    SCHEMA({"type": "array", "items": {"type": "object", "additionalProperties": false, "required": \
        ["workload", "clusters"], "properties": {"workload": {"type": "string", "minLength": 1, \
        "maxLength": 253, "description": "One of targetWorkloads."}, "clusters": {"type": "array", \
        "items": {"type": "string"}, "description": "Some of clusters.", "minItems": 1}}},)

#define PLAN_REQUEST_SCHEMA \
    SCHEMA({"type": "object", "additionalProperties": false, "required": ["clusters", "targetWorkloads", \
        "preference"], "properties": { \
        "namespace": {"type": "string", "minLength": 1, "maxLength": 253, "description": \
            "Of Policies, workloads and the objects that are made.", "default": "default"}, \
        "clusters": {"type": "array", "items": {"type": "object", "additionalProperties": false, \
            "required": ["name", "availablePolicies"], "properties": {"name": {"type": "string", \
            "minLength": 1, "maxLength": 253, "description": "A ManagedCluster."}, "availablePolicies": \
            {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": \
            ["name"], "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 253, \
            "description": "A Policy with labels resource-supply-kind, -amount, -device."}}}, \
            "description": "At most one of each kind is bound to the cluster.", "maxItems": 64}}}, \
            "description": "Clusters, and the policies each of them may get.", "minItems": 1, "maxItems": \
            10000}, \
        "targetWorkloads": {"type": "array", "items": {"type": "object", "additionalProperties": false, \
            "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1, "maxLength": \
            253, "description": \
            "A ManifestWorkReplicaSet with labels app, resource-request-kind, -amount."}, "replicas": \
            {"type": "integer", "minimum": 1, "maximum": 10000, "default": 1, "description": \
            "On how many clusters it is to run."}}}, "description": "What is to be placed.", "minItems": \
            1, "maxItems": 200000}, \
        "preference": {"type": "object", "additionalProperties": false, "description": \
            "What is to be maximised: one score, or a weighted sum of several.", "properties": \
            {) PLAN_SCORE_NAME SCHEMA("addOnPlacementScore": {"type": "string", "description": \
            "The same in another spelling.", "deprecated": true},) PLAN_SCORE_FORMAT SCHEMA(, \
            "scores": {"type": "array", "items": {"type": "object", "additionalProperties": false, \
            "properties": {) PLAN_SCORE_NAME SCHEMA("addOnPlacementScore": {"type": "string", \
            "deprecated": true},) PLAN_SCORE_FORMAT SCHEMA(, "weight": {"type": "number", "minimum": \
            -1000, "maximum": 1000, "default": 1}}}, "description": \
            "In place of addonPlacementScore: the sum of weight times value.", "minItems": 1, \
            "maxItems": 8}}}, \
        "dryRun": {"type": "boolean", "default": false, "description": "Answer only, write nothing."}, \
        "deadline": {"type": "string", "description": \
            "For the solver, 10ms to 10m: 5s. The best answer so far counts.", "examples": ["5s"]}, \
        "moves": {"type": "object", "additionalProperties": false, "description": \
            "A move is a replica that will not be where it runs now.", "properties": {"cost": {"type": \
            "number", "minimum": 0, "maximum": 100000, "default": 0, "description": \
            "Points of the score that a move must gain to be worth it."}, "max": {"type": "integer", \
            "minimum": 0, "maximum": 1000000, "description": "At most so many moves."}}}, \
        "spread": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": \
            ["label"], "properties": {"label": {"type": "string", "minLength": 1, "description": \
            "A label of ManagedClusters, such as zone."}, "max": {"type": "integer", "minimum": 1, \
            "maximum": 10000, "default": 1}, "workloads": {"type": "array", "items": {"type": "string"}, \
            "description": "These together; without it, each workload by itself.", "minItems": 1}}}, \
            "description": "At most max replicas on the clusters with the same value of a label.", \
            "maxItems": 16}, \
        "pin":) PLAN_RULES SCHEMA( \
            "description": "Workloads that may only go to these clusters.", "maxItems": 10000}, \
        "forbid":) PLAN_RULES SCHEMA( \
            "description": "Workloads that may not go to these clusters.", "maxItems": 10000}}, \
        "examples": [{"namespace": "default", "clusters": [{"name": "worker01", "availablePolicies": \
            [{"name": "policy-enable-mig-3g-worker01"}]}], "targetWorkloads": [{"name": "mwrs-app01"}], \
            "preference": {"addonPlacementScore": "example-performance-score", "scoreDimensionFormat": \
            "${app};${device}"}, "dryRun": true}]})

#define PLAN_ANSWER_SCHEMA \
    SCHEMA({"type": "object", "required": ["status", "objective_value", "planHash", "applied"], \
        "properties": { \
        "status": {"enum": ["Optimal", "Feasible", "Infeasible"], "description":) SCHEMA_TEXT( \
                "Optimal: proven. Feasible: the best found, at most gap from the best there is. " \
                "Infeasible: moves.max cannot be kept.") SCHEMA(}, \
        "objective_value": {"type": ["number", "null"], "description": \
            "Sum of scores, less the cost of moves."}, \
        "bound": {"type": ["number", "null"], "description": "No answer is better than this."}, \
        "gap": {"type": ["number", "null"], "description": \
            "Between the two, relative; 0: proven optimal."}, \
        "engine": {"type": "string"}, \
        "deadlineReached": {"type": "boolean"}, \
        "planHash": {"type": "string", "description": "For apply."}, \
        "applied": {"type": "boolean", "description": "Whether the objects were written."}, \
        "placements": {"type": "array", "items": {"type": "object", "properties": {"workload": {"type": \
            "string"}, "cluster": {"type": "string"}, "device": {"type": "string"}, "policy": {"type": \
            "string"}, "score": {"type": "number"}}}, "description": "Which workload goes where."}, \
        "clusters": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": \
            "string"}, "kind": {"type": "string"}, "device": {"type": ["string", "null"]}, "policy": \
            {"type": ["string", "null"]}, "supplied": {"type": "number"}, "used": {"type": "number"}}}, \
            "description": "How each cluster is set, and how full it is."}, \
        "moves": {"type": "array", "items": {"type": "object", "properties": {"workload": {"type": \
            "string"}, "from": {"type": "string"}, "to": {"type": ["string", "null"]}}}, "description": \
            "What runs elsewhere now."}, \
        "leftOut": {"type": "array", "items": {"type": "object", "properties": {"workload": {"type": \
            "string"}, "replicas": {"type": "integer"}, "reason": {"enum": ["NoCapacity", "NoScore", \
            "NegativeScore", "KindDiffers", "Pinned", "Spread", "MoveBudget"]}, "message": {"type": \
            "string"}}}, "description": "What has no place, and why."}, \
        "missingScores": {"type": "object", "properties": {"count": {"type": "integer"}, "first": {"type": \
            "array", "items": {"type": "object", "properties": {"workload": {"type": "string"}, "cluster": \
            {"type": "string"}, "device": {"type": "string"}}}, "description": "The first of them."}}}, \
        "notes": {"type": "array", "items": {"type": "string"}, "description": \
            "What else is worth knowing."}, \
        "totals": {"type": "object", "additionalProperties": {"type": "integer"}, "description": \
            "Lengths of the lists, also where they are cut."}, \
        "written": {"type": "object", "properties": {"created": {"type": "array", "items": {"type": \
            "string"}, "description": "Kind/name"}, "updated": {"type": "array", "items": {"type": \
            "string"}, "description": "Kind/name"}, "deleted": {"type": "array", "items": {"type": \
            "string"}, "description": "Kind/name"}}}, \
        "output_yaml": {"type": "string", "description": "All objects of the plan."}}})
/* clang-format on */

#endif
