/* The flags that the agent and the controller have in common. */
#ifndef DS_CONTROLLER_SERVER_FLAGS_H
#define DS_CONTROLLER_SERVER_FLAGS_H

#include "controller/flags.h"
#include "controller/kube/client.h"
#include "controller/kube/guard.h"
#include "exporter/base/log.h"

struct server_flags {
    enum log_level log_level;
    enum log_format log_format;
    bool has_log_level, has_log_format; /* given, which for the agent matters beside its file */
    const char *web_config_file;        /* NULL: none */
    bool kubernetes_auth;
    struct kube_guard_options guard; /* without the client */
};

/* What is in force without the flags. */
extern const struct server_flags server_flags_default;
/* For struct command. */
extern const struct flag server_flags[];
/* Those of them that need no cluster. */
extern const struct flag *const server_flags_anywhere;

/* The guard of the HTTP server; NULL if no flag asks for one. The rights as for kube_guard_new(). -ENOMEM. */
MUST_USE int server_flags_guard(struct kube_guard **ret, const struct server_flags *f, struct kube *k,
                                const struct kube_path_right *rights);

/* For struct flag: a text, "host:port", ":port", or "0" for none. */
bool flag_address(void *field, const char *value, const struct flag *f);
#define FLAG_ADDRESS_EXPECTED "host:port, :port, or 0 for none; ports are 0 to 65535"

#endif
