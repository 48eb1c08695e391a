/* Values of enumerations that stages take as arguments: rows of the engines (VARIANT, VECTOR_OP and TOPOLOGY, target/engines.def).
 *
 * The one idea: a name `Type::Variant` is looked up among the rows; some are told apart by an argument, `FpBinaryOp::MulF(FpMulAlu::Mul0)`.
 */
#ifndef VISA_FRONTEND_VARIANT_H
#define VISA_FRONTEND_VARIANT_H

#include "frontend/scope.h"

/* The value that the path names, with the argument that it is called with (NULL: none), into *out; of kind VALUE_ERROR: no row has its
 * type. Not NULL: it is refused, with this help. */
const char *variant_find(arena *a, const ast *path, const value *argument, value *out);
/* Is it a name of which no release says what it does? */
bool variant_is_unknown(const ast *path);
/* Is the path a name that takes arguments, and how many? */
bool variant_takes_arguments(const ast *path, unsigned *count);
/* The same with these arguments, which `out` keeps; false: no VARIANT_OF row has the name. */
bool variant_of(const ast *path, const value *arguments, size_t count, value *out);
/* Is it a method that adds an operand to those of `Branched`? */
bool variant_joins(const value *receiver, const char *method);
/* Is it the method that gives an operation its mode? */
bool variant_takes_mode(const value *receiver, const char *method);
/* A name without its type, as in `Stash`. */
bool variant_bare(const char *name, value *out);
/* "TrfAddress::Full" for `Full`; NULL: no enumeration of a stage's own argument has the name. */
const char *variant_typed(arena *a, const char *name);
/* "`ClipBinaryOpF32::Max`, `IntraSliceReduceOpF32::Max`" for `Max`, the operations of that name; NULL: there are none. */
const char *variant_operations(arena *a, const char *name);
/* "TrfAddress::Full" for `TrfAdress::Full`: the name is right, and the type nearly; NULL: there is none. */
const char *variant_near_type(arena *a, const char *type, const char *name);
/* The name that a newer enumeration has for the value `type::name`; NULL: it has none. */
const char *variant_renamed(const char *type, const char *name, const char *new_type);
/* What is written after the name of a way through the Switch Engine, "{ slice1: .., slice0: .. }", or "" */
const char *variant_fields(arena *a, const topology_row *row);
/* Every name of that type, in the order of the rows, with what it does or its fields ("": the row does not say); one with several rows
 * comes as often. */
void variant_visit(arena *a, const char *type, void (*visit)(void *user, const char *name, const char *meaning), void *user);

#endif
