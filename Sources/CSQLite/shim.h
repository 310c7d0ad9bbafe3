#pragma once
#include <sqlite3.h>

// Variadic, which Swift cannot call. Before the first use of SQLite: no pages are set aside in advance, as the 20 for
// each open file would be most of what a database of a few pages needs.
static inline int csqlite_allocate_pages_singly(void) {
  return sqlite3_config(SQLITE_CONFIG_PAGECACHE, (void *)0, 0, 0);
}
