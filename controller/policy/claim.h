/* What the policies of a cluster say together: the value of its ClusterClaim. Pure. */
#ifndef DS_POLICY_CLAIM_H
#define DS_POLICY_CLAIM_H

#include "exporter/base/clock.h"

#endif
