/* The JSON of a configuration's problems and of the web configuration, for every role. */
#ifndef DS_UI_WEB_CONFIG_H
#define DS_UI_WEB_CONFIG_H

#include "exporter/ui/out.h"
#include "exporter/web/access.h"

/* The member "problems": a list of lines; problems may be NULL. */
void member_problems(struct out *o, const char *problems);
/* The member "webConfig"; null without a web configuration file. */
void member_web_config(struct out *o, const struct access *access);

#endif
