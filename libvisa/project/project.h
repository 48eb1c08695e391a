/* `visac init`: a project to build on.
 *
 * The one idea: its files are those of libvisa/project/files/, in the program; they are all written, or none, and never over what is there.
 */
#ifndef VISA_LIBVISA_PROJECT_PROJECT_H
#define VISA_LIBVISA_PROJECT_PROJECT_H

#include "support/diag.h"
#include "support/output.h"

/* Makes the folder where it is not there, and its files. What there is to say of it; NULL: diagnosed. */
const char *project_begin(const char *folder, output_set *files, diag_list *diags);

#endif
