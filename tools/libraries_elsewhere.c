/* Of visac, which becomes visac-plugins. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "support/executable.h"
#include "tools/libraries.h"

const library_work *library_work_begin(char **argv, diag_list *diags)
{
    const char *program = executable_file("visac-plugins", diags->arena);
    errno = ENOENT;
    if (program)
        execv(program, argv);
    diag *d = diag_add(diags, E_PLUGINS, SRC_NOWHERE, "visac-plugins cannot be started: %s", strerror(errno));
    diag_help(diags, d,
              "install visac-plugins next to visac or in ../lib/visac: it does --check, the LLVM outputs, --explore under mpirun and "
              "`visac tune` of stream programs");
    return NULL;
}
