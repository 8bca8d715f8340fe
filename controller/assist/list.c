/* Owns nothing; whoever has the list calls it. */
#include "controller/assist/list.h"

#include "controller/kube/json.h"

void list_note(json_t *list, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)json_array_append_new(list, json_vsprintf(fmt, ap));
    va_end(ap);
}

const json_t *list_find(const json_t *list, const char *key, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        if (strcmp(cstr(kube_str(one, key, NULL)), text) == 0)
            return one;
    }
    return NULL;
}

json_t *list_head(const json_t *list, size_t n)
{
    json_t *head = json_array();

    for (size_t i = 0; i < n && i < json_array_size(list); i++)
        (void)json_array_append(head, json_array_get(list, i));
    return head;
}
