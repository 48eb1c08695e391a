#define VECTOR_SET vector_plain
#define VECTOR_LEVEL CPU_PLAIN
#include "runtime/engine/vector_body.h"
