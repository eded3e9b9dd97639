#pragma once

#include <libpq-fe.h>

// The fields of an error that say something about it without repeating a value: characters in C, which Swift does not import as numbers.
static inline int fanfare_diag_sqlstate(void) { return PG_DIAG_SQLSTATE; }
static inline int fanfare_diag_constraint(void) { return PG_DIAG_CONSTRAINT_NAME; }
