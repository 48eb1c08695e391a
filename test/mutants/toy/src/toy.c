#include "src/toy.h"

int toy_sum(int n)
{
    int sum = 0;
    for (int i = 1; i <= n; i++)
        sum += i;
    return sum;
}

/* Nobody asks for two equal numbers: one of them or the other, that is the same. */
int toy_larger(int a, int b)
{
    return a > b ? a : b;
}

unsigned toy_is_zero(unsigned n)
{
    return n == 0;
}

int toy_forgotten(int n)
{
    return n + 1;
}
