/* Between the logical tensor of a port and its physical bytes.
 *
 * The one idea: a port's physical bytes are the elements at all positions of its components, in their order
 * (codegen/container.h); the logical tensor is whole axes. Where a position's element belongs is asked of the
 * mapping's definition (layout_map), component by component, coordinates added; positions without an element
 * (padding, an axis reached its size) are skipped. What packs a port also says how large it is.
 *
 * The layouts must have passed layout_check. */
#ifndef VISA_RUNTIME_TENSOR_PORT_DATA_H
#define VISA_RUNTIME_TENSOR_PORT_DATA_H

#include "codegen/container.h"
#include "runtime/tensor/tensor.h"

/* Numbers of the axes of the logical tensor, in the order in which the components first name them; *order is
 * in the arena. Returns how many. */
uint32_t port_logical_axes(const port *p, const layout_axis *axes, uint32_t axis_count, arena *a, uint32_t **order);

/* The logical tensor's type, with the axes' names. */
tensor_type port_logical_type(const port *p, const layout_axis *axes, uint32_t axis_count, arena *a);

/* Positions of the port; -1 when they pass 2^60. */
int64_t port_physical_elements(const port *p, const layout_axis *axes);
/* Bytes of the positions, i4 two per byte, element 0 in the low nibble; -1 when they pass 2^60 elements. */
int64_t port_physical_bytes(const port *p, const layout_axis *axes);

/* Copies every live position's element from the logical tensor (tensor_bytes of port_logical_type) to
 * `physical` (port_physical_bytes); dead positions keep what they hold. False: no memory, or sizes past 2^60.
 */
bool port_pack(const port *p, const layout_axis *axes, uint32_t axis_count, const unsigned char *logical, unsigned char *physical);

/* Is each position's element the one with its number? */
bool port_is_in_order(const port *p);

/* Has every position an element? */
bool port_is_whole(const port *p, const layout_axis *axes, uint32_t axis_count);

/* Positions that hold an element which an earlier position holds with other bits. */
typedef struct port_copies {
    int64_t disagreements;
    int64_t first; /* position; -1: none */
} port_copies;

/* The way back. covered (one byte per logical element, may be NULL) becomes 1 where a live position holds the
 * element and 0 elsewhere; elements that no position holds are left as they are. When several positions hold
 * one element (broadcast), the first counts; *copies (may be NULL) tells of the later ones that hold
 * other bits. */
bool port_unpack(const port *p, const layout_axis *axes, uint32_t axis_count, const unsigned char *physical, unsigned char *logical,
                 unsigned char *covered, port_copies *copies);

#endif
