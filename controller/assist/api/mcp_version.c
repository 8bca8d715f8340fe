/* Which revision a message is of, and the headers and members that revision asks for. */
#include "controller/assist/api/mcp.h"

#include "exporter/base/str.h"

#include <string.h>

static const char *const mcp_known[] = {MCP_STATELESS, MCP_STATEFUL, "2025-06-18", "2025-03-26",
                                        "2024-11-05"};

json_t *mcp_versions(void)
{
    json_t *all = json_array();

    for (size_t i = 0; i < ARRAY_SIZE(mcp_known); i++)
        if (json_array_append_new(all, json_string(mcp_known[i])) < 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

bool mcp_is_stateful(const char *version)
{
    for (size_t i = 1; i < ARRAY_SIZE(mcp_known); i++)
        if (strcmp(mcp_known[i], version) == 0)
            return true;
    return false;
}

static void version_refuse(const struct mcp_message *m, const char *version)
{
    mcp_reply_error(m, MCP_UNSUPPORTED_VERSION,
                    json_pack("{s:o,s:s}", "supported", mcp_versions(), "requested", version),
                    "unsupported protocol version");
}

/* libmicrohttpd leaves the white space around a value. */
static bool version_header_is(const char *header, const char *value)
{
    return header && str_eq(str_trim(str_of(header)), str_of(value));
}

/* What Mcp-Name repeats of the body; NULL for methods without. */
static const char *version_name(const struct mcp_message *m)
{
    const char *key = strcmp(m->method, "tools/call") == 0 || strcmp(m->method, "prompts/get") == 0 ? "name"
                      : strcmp(m->method, "resources/read") == 0                                    ? "uri"
                                                                                                    : NULL;

    return key ? json_string_value(json_object_get(m->params, key)) : NULL;
}

/* The header that does not say what the body says; NULL if all do. */
static const char *version_wrong_header(const struct mcp_message *m, const char *version)
{
    const char *name = version_name(m);

    if (!version_header_is(m->header_version, version))
        return "MCP-Protocol-Version differs from params._meta";
    if (!version_header_is(m->header_method, m->method))
        return "Mcp-Method differs from method";
    if (name && !version_header_is(m->header_name, name))
        return "Mcp-Name differs from params";
    return NULL;
}

static bool version_check_stateless(const struct mcp_message *m)
{
    const json_t *meta = json_object_get(m->params, "_meta");
    const char *version = json_string_value(json_object_get(meta, MCP_META "protocolVersion"));
    const char *wrong = version ? version_wrong_header(m, version) : NULL;

    if (!m->id) /* a notification says nothing about itself */
        return true;
    if (!version)
        mcp_reply_error(m, MCP_INVALID_PARAMS, NULL, "params._meta: " MCP_META "protocolVersion is missing");
    else if (!json_is_object(json_object_get(meta, MCP_META "clientCapabilities")))
        mcp_reply_error(m, MCP_INVALID_PARAMS, NULL,
                        "params._meta: " MCP_META "clientCapabilities is missing");
    else if (wrong)
        mcp_reply_error(m, MCP_HEADER_MISMATCH, NULL, wrong);
    else if (strcmp(version, MCP_STATELESS) != 0)
        version_refuse(m, version);
    else
        return true;
    return false;
}

bool mcp_check_version(struct mcp_message *m)
{
    const json_t *meta = json_object_get(m->params, "_meta");
    const char *header = m->header_version;

    m->is_stateless =
        json_object_get(meta, MCP_META "protocolVersion") || version_header_is(header, MCP_STATELESS);
    if (!m->method)
        return true;
    if (m->is_stateless)
        return version_check_stateless(m);
    /* Without the header it is 2025-03-26. */
    if (!header || mcp_is_stateful(header))
        return true;
    m->is_stateless = true; /* of a revision to come */
    version_refuse(m, header);
    return false;
}
