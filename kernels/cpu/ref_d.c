#define LETTER  d
#define REAL    double
#define SINGLE  0
#define COMPLEX 0
#include "kernels/cpu/ref_body.h"
