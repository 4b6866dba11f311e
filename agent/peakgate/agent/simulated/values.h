/* How the values of a scenario are read: each function puts what the text says into `to`, and returns 0 when it is no such value. */
#ifndef SIMULATED_NVML_VALUES_H
#define SIMULATED_NVML_VALUES_H

#include "simulation.h"

#define COUNT(array) (sizeof array / sizeof array[0])
typedef int (*Reader)(char *text, void *to);

int read_seconds(char *text, void *to);   /* double */
int read_whole(char *text, void *to);     /* int */
int read_count(char *text, void *to);     /* long, not negative */
int read_number(char *text, void *to);    /* u64: a size with K, M or G (powers of 1024), a bit mask */
int read_text(char *text, void *to);      /* char[TEXT_LENGTH] */
int read_name(char *text, void *to);      /* the same; `_` stands for a blank */
int read_switch(char *text, void *to);    /* u64: on, off, NA and such words */
int read_series(char *text, void *to);    /* Series: T:VALUE,T:VALUE,… or one VALUE from second 0 on; a VALUE is a number or such a word */
int read_watts(char *text, void *to);     /* Series in milliwatts */
int read_memory(char *text, void *to);    /* Series that says when it begins */
int read_kinds(char *text, void *to);     /* int: one or several process lists, compute+graphics */

#endif
