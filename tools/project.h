/* `visac init`: a project to build on.
 *
 * The one idea: its files are those of tools/project/, in the program; they are all written, or none, and never over what is there. */
#ifndef VISA_TOOLS_PROJECT_H
#define VISA_TOOLS_PROJECT_H

#include "support/diag.h"
#include "support/output.h"

/* Makes the folder where it is not there, its files, and says so. The exit status. */
int project_begin(const char *folder, output_set *files, diag_list *diags);

#endif
