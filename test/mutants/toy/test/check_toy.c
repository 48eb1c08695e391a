#include "src/toy.h"

int main(void)
{
    return toy_sum(4) == 10 && toy_larger(1, 2) == 2 && toy_larger(2, 1) == 2 && toy_is_zero(0) && !toy_is_zero(1) ? 0 : 1;
}
