#ifndef TEXTCAT_FORMULA_H
#define TEXTCAT_FORMULA_H

/* A rule of the family (see rules.pyx): its current threshold, and how it steps when a margin test has failed. */
typedef struct {
    double (*threshold)(const double *p, int y, double N, double t, double R);
    void (*step)(const double *p, double m, double q, double N, double t, double R, double *shrink, double *grow);
    double p[4];
    int constant; /* whether the threshold is the same for all N, t and R */
    int uneven;   /* whether it differs between positive and negative rows */
    int anew;     /* whether float64 is to sum N anew after every step, where there are no private coordinates */
} formula;

#endif
