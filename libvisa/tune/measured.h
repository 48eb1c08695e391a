/* What a plan's copies and passes are estimated to take by `--timing=measured`.
 *
 * The one idea: the rules of runtime/timing/measured_cost.h, asked with what a plan knows of a copy before it is a command: how many slices
 * get runs of which length. So the order in which plans are compiled is that of the timing that judges them. */
#ifndef VISA_LIBVISA_TUNE_MEASURED_H
#define VISA_LIBVISA_TUNE_MEASURED_H

#include "target/target.h"

/* Of one side in HBM, the other in DM. */
typedef struct measured_copy {
    int64_t pieces, bytes;     /* of each slice, so many contiguous bytes each */
    int64_t run;               /* bytes of HBM that follow each other in a slice: of one piece or of several */
    int64_t slices, engines;   /* of the chip, that have pieces; and DMA engines that they are under */
    int64_t clusters;          /* that work */
    int64_t distinct;          /* bytes of HBM that each cluster touches, all together: less than all where its slices get the same, or have
                                  padding */
    bool is_store, is_aligned; /* aligned: pieces begin where blocks of HBM do */
} measured_copy;
int64_t measured_copy_cycles(const target *t, const measured_copy *c);

/* What binds a pass, so that its fixed part is known. */
typedef enum measured_pass { MEASURED_PASS, MEASURED_CONTRACTION, MEASURED_SWITCH } measured_pass;

/* Of so many documented cycles; 0 of none. */
int64_t measured_pass_cycles(measured_pass kind, int64_t documented);

/* Documented cycles that a step of a contraction counts as at least. */
int64_t measured_step_cycles(void);

/* What a copy that moves nothing takes, and a kernel without commands. */
int64_t measured_start_cycles(void);
int64_t measured_ends_cycles(void);

#endif
