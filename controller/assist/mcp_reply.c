/* Owns nothing; any thread that has the buffer or the result. */
#include "controller/assist/mcp_reply.h"

#include "exporter/metric/metrics.h"
#include "exporter/ui/member.h"

json_t *mcp_server_info(void)
{
    return json_pack("{s:s,s:s,s:s}", "name", "dynamic-scoring-framework-mcp", "title",
                     "Dynamic Scoring optimizer", "version", ds_version);
}

void mcp_add_stateless(json_t *result)
{
    (void)json_object_set_new(result, "resultType", json_string("complete"));
    (void)json_object_set_new(result, "_meta", json_pack("{s:o}", MCP_META "serverInfo", mcp_server_info()));
}

void mcp_put_head(struct buf *into, struct str id, const char *member)
{
    buf_puts(into, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_put_str(into, id.n ? id : STR("null"));
    buf_printf(into, ",\"%s\":", member);
}
