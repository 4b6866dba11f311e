/* How the values of a scenario are read. Each reader returns 0 when the text is no such value. */
#define _GNU_SOURCE
#include "values.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int read_seconds(char *text, void *to) {
    char *end;
    *(double *)to = strtod(text, &end);
    return end != text && !*end;
}
int read_whole(char *text, void *to) {
    char *end;
    *(int *)to = (int)strtol(text, &end, 0);
    return end != text && !*end;
}
int read_count(char *text, void *to) {
    char *end;
    *(long *)to = strtol(text, &end, 0);
    return end != text && !*end && *(long *)to >= 0;
}
static int read_scaled(char *text, double factor, u64 *to) {
    char *end;
    double number = strtod(text, &end);
    u64 unit = *end == 'G' ? 1ULL << 30 : *end == 'M' ? 1ULL << 20 : *end == 'K' ? 1ULL << 10 : 1ULL;
    number *= (double)unit * factor;
    if (end == text || end[unit > 1] || !(number >= 0 && number < 0x1p63)) return 0;
    *to = (u64)number;
    return 1;
}
int read_number(char *text, void *to) { return read_scaled(text, 1, to); }
int read_text(char *text, void *to) { return snprintf(to, TEXT_LENGTH, "%s", text) < TEXT_LENGTH; }
int read_name(char *text, void *to) {
    for (char *c = text; *c; c++)
        if (*c == '_') *c = ' ';
    return read_text(text, to);
}
int read_switch(char *text, void *to) {
    static const struct { const char *word; u64 value; } words[] = {
        { "on", 1 }, { "yes", 1 }, { "off", 0 }, { "no", 0 }, { "NA", NOT_AVAILABLE }, { "unsupported", NOT_AVAILABLE }, { "end", NOTHING }};
    for (size_t i = 0; i < COUNT(words); i++)
        if (!strcmp(text, words[i].word)) return *(u64 *)to = words[i].value, 1;
    return 0;
}
static int read_step(char *text, double factor, Step *step) { return read_switch(text, &step->value) || read_scaled(text, factor, &step->value); }
static int read_steps(char *text, double factor, Series *series) {
    char *rest;
    if (!strchr(text, ':')) return series->steps = 1, series->step[0].at = 0, read_step(text, factor, &series->step[0]);
    series->steps = 0;
    for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char *colon = strchr(item, ':');
        if (!colon || series->steps == MAX_STEPS) return 0;
        *colon = 0;
        Step *step = &series->step[series->steps++];
        if (!read_seconds(item, &step->at) || !read_step(colon + 1, factor, step)) return 0;
        if (series->steps > 1 && step->at < step[-1].at) return 0;
    }
    return series->steps > 0;
}
int read_series(char *text, void *to) { return read_steps(text, 1, to); }
int read_watts(char *text, void *to) { return read_steps(text, 1000, to); }
int read_memory(char *text, void *to) { return strchr(text, ':') && read_series(text, to); }
int read_kinds(char *text, void *to) {
    static const struct { const char *word; int bit; } words[] = {{ "compute", COMPUTE }, { "graphics", GRAPHICS }, { "mps", MPS }};
    int *kinds = to;
    char *rest;
    *kinds = 0;
    for (char *item = strtok_r(text, "+", &rest); item; item = strtok_r(NULL, "+", &rest)) {
        int before = *kinds;
        for (size_t i = 0; i < COUNT(words); i++)
            if (!strcmp(item, words[i].word)) *kinds |= words[i].bit;
        if (*kinds == before) return 0;
    }
    return *kinds != 0;
}
